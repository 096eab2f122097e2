"""What is in an open store: its records in index order, a chunk at a time, and of which types they are."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ._records import Chunk, Kind
from ._values import dtype_from_schema

ROWS = 1 << 14  # at most in a chunk
BYTES = 1 << 24  # of keys and values in a chunk, more or less


def types_of(store: Any) -> tuple[np.dtype[Any] | None, Kind]:
    """dtype of the keys, None for bytes; and kind of the values."""
    said = store.info()
    values = said["values"]
    key_dtype = None if said["key_type"] in ("bytes", "str") else np.dtype(said["key_type"])
    if values is None or values in ("bytes", "str", "json"):
        return key_dtype, values
    return key_dtype, dtype_from_schema(values, said["value_width"])


def described(key_dtype: np.dtype[Any] | None, kind: Kind) -> str:
    """The types in words, the same for the same types. (To numpy, None is a dtype.)"""
    return f"keys are {'bytes' if key_dtype is None else key_dtype}, values {'none' if kind is None else kind}"


def has_keys(store: Any) -> bool:
    """Whether it can list them: a store that keeps fingerprints alone raises TypeError."""
    try:
        next(iter(store.keys()), None)
    except (TypeError, AttributeError):
        return False
    return True


def chunks_of(store: Any) -> Iterator[Chunk]:
    """All records, positions from 1. Raises TypeError if the keys are not stored."""
    key_dtype, kind = types_of(store)
    if kind is None:
        return chunks(((key, None) for key in iter(store.keys())), key_dtype, kind)
    if isinstance(kind, np.dtype):
        return _of_array(store.keys(), store.values_array(), key_dtype)
    return chunks(store.items(), key_dtype, kind)


def _of_array(keys: Iterable[Any], values: Any, key_dtype: np.dtype[Any] | None) -> Iterator[Chunk]:
    """Keys in index order and the array of all values, which is."""
    at = 0
    for chunk in chunks(((key, None) for key in keys), key_dtype, None):
        yield Chunk(chunk.positions, chunk.keys, values[at : at + len(chunk.keys)])
        at += len(chunk.keys)


def chunks(items: Iterable[tuple[Any, Any]], key_dtype: np.dtype[Any] | None, kind: Kind) -> Iterator[Chunk]:
    """Pairs of keys and values as chunks of bounded size; values None where there are none."""
    items, at = iter(items), 1
    while some := list(_bounded(items)):
        keys: Any = [key for key, _ in some]
        values: Any = None if kind is None else [value for _, value in some]
        if isinstance(kind, np.dtype):
            values = np.array(values, kind)
        yield Chunk(range(at, at + len(some)), keys if key_dtype is None else np.array(keys, key_dtype), values)
        at += len(some)


def _bounded(items: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    size = 0
    for item in itertools.islice(items, ROWS):
        yield item
        size += sum(len(part) for part in item if isinstance(part, bytes | str))
        if size >= BYTES:
            return


def is_text(columns: Iterable[Any]) -> bool:
    """Whether all byte strings of some columns are UTF-8."""
    try:
        for column in columns:
            for item in column:
                if isinstance(item, bytes):
                    item.decode()
    except UnicodeDecodeError:
        return False
    return True
