"""Keys that are stored: where they lie in a file, and reading them in the order of their indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrow import Columns
from ._errors import FormatError
from ._format import File, Section
from ._keys import BytesKeys, IntegerKeys, KeyBatch, KeyType, offsets_of
from ._native import ffi, lib
from ._strings import MAX_WIDTH, Sections, Strings, Words, rows_section

CHUNK = 1024  # keys looked up at a time

STORAGE = ("fingerprint", "exact")


@dataclass(frozen=True)
class StoredKeys:
    """Keys in index order: their width, None if it varies, and per section its length and its bytes in chunks."""

    width: int | None
    sections: Sections


def all_text(keys: Any) -> bool:
    """Whether every key of a batch is given as `str`."""
    if isinstance(keys, Columns):
        return keys.kind == "text" or not len(keys)
    if isinstance(keys, np.ndarray) and keys.dtype.kind != "O":
        return keys.dtype.kind in "UT"
    return all(isinstance(key, str) for key in keys)


def place_keys(keys: KeyBatch, kind: KeyType, order: Words) -> StoredKeys:
    """The keys of the records `order`, one per index."""
    if kind.size:
        return StoredKeys(kind.size, rows_section(Section.KEYS, keys.data, kind.size, order))
    data, lengths = keys.spelled_out()
    strings = Strings(data, offsets_of(lengths) if keys.offsets is None else keys.offsets)
    return StoredKeys(*strings.sections(order, Section.KEYS, Section.KEY_OFFSETS, Section.KEYS))


def attach_keys(reader: Any, file: File, memory: dict[Section, Any]) -> None:
    """Gives a native reader the keys of a file, if it has them. Raises FormatError unless they are as many as they
    should be."""
    if file.schema.get("keys") != "exact":
        return
    width = file.schema.get("key_width")
    if width is not None and not (type(width) is int and 0 <= width <= MAX_WIDTH):
        raise FormatError(f"keys of {width!r} bytes")
    size = IntegerKeys(kind).size if (kind := file.schema.get("key_type")) not in ("bytes", "str") else None
    if size is not None and size != width:
        raise FormatError(f"keys of type {kind} and {width!r} bytes")
    stored, offsets = memory[Section.KEYS], memory[Section.KEY_OFFSETS]
    status = lib.mphf_reader_keys(
        reader, stored, len(stored), width or 0, ffi.NULL if width is not None else offsets, len(offsets)
    )
    if status != lib.STATUS_OK:
        raise FormatError("keys are not as many or as wide as the file says")


def iterate_keys(opened: Any, kind: KeyType) -> Iterator[Any]:
    """The keys in the order of their indices, one object at a time. `opened` is kept, closed or not."""
    file: File = opened.file
    stored, count = file.sections[Section.KEYS], file.header.keys
    if isinstance(kind, IntegerKeys):
        array = keys_as_array(file, kind)
        for begin in range(0, count, CHUNK):
            yield from array[begin : begin + CHUNK].tolist()
        return
    starts, ends = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    pointers = [ffi.from_buffer("int64_t[]", one) for one in (starts, ends)]
    for first in range(0, count, CHUNK):
        size = min(CHUNK, count - first)
        if lib.mphf_key_span_batch(opened.reader, first, size, *pointers) != lib.STATUS_OK:
            raise FormatError("the file contradicts itself: it was not written by mphfstore")
        for begin, end in zip(starts[:size].tolist(), ends[:size].tolist(), strict=True):
            yield kind.decode(stored[begin:end].tobytes())


def keys_as_array(file: File, kind: KeyType) -> NDArray[Any]:
    """All keys in index order as an array on the file: integers, or strings of one width. TypeError where they have no
    dtype."""
    width = file.schema.get("key_width")
    if isinstance(kind, BytesKeys) and not width:
        raise TypeError("keys of this store differ in length and are no array: iterate over keys()")
    dtype = kind.dtype if isinstance(kind, IntegerKeys) else np.dtype(f"S{width}")
    return np.frombuffer(file.sections[Section.KEYS], dtype, file.header.keys)
