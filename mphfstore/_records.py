"""Records on their way in or out: chunks of keys and values, and fields as what a store keeps.

    format    → Chunk (positions, keys, values)    one reader per format: _text, _cdbmake, _arrow, _databases
    Chunk     → keys and values of a type           `typed`, which names the record that has none
    field     → bytes, str, JSON, int, float, row   `converter`, which knows the type and its bounds

Fields are `bytes` where a format has text or bytes, JSON's are what JSON has, databases' and Arrow's are numbers
where those have numbers. In formats that know bytes alone – TSV, CSV, cdbmake, LMDB – a number is its decimal text
and a record of several fields is JSON."""

from __future__ import annotations

import base64
import binascii
import contextlib
import itertools
import json
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

Record = tuple[int, Any, Any]  # position, key, value
Kind = Any  # of values: None for none, "bytes", "str", "json", or a numpy dtype

CHUNK = 4096  # records that are Python objects at a time on the way in
NON_FINITE = ("NaN", "Infinity", "-Infinity")  # which JSON has no number for


@dataclass(frozen=True)
class Chunk:
    """Some records: where each stands in its source; keys and values are lists, or arrays of numbers."""

    positions: Sequence[int]
    keys: Any
    values: Any  # None if there are none


class BadRecord(ValueError):
    """A record that is none, and what is wrong with it. `position` is in the source's unit; None is all of it."""

    def __init__(self, position: int | None, what: str) -> None:
        super().__init__(what)
        self.position = position


class Unwritable(ValueError):
    """A record that a format has no form for, and what to do about it."""


def shown(field: object) -> str:
    """A field as it is named in a message: bytes as text where they are UTF-8, and not too long."""
    if isinstance(field, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            field = field.decode()
    return shortened(repr(field))


def shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."


def chunked(records: Iterable[Record], size: int = CHUNK) -> Iterator[Chunk]:
    """Records of Python objects, some at a time."""
    records = iter(records)
    while some := list(itertools.islice(records, size)):
        positions, keys, values = zip(*some, strict=True)
        yield Chunk(positions, list(keys), list(values))


def typed(
    chunks: Iterator[Chunk], positions: array[int] | None, key_dtype: np.dtype[Any] | None, kind: Kind
) -> Iterator[tuple[Any, Any]]:
    """Keys and values of some records at a time, as a `Builder` of this type takes them; `positions` gets theirs.

    Raises BadRecord for a key or value of another type."""
    to_key, to_value = converter(key_dtype) if key_dtype else _as_key, None if kind is None else converter(kind)
    for chunk in chunks:
        keys = _column(chunk, "key", chunk.keys, to_key, key_dtype)
        values = None if to_value is None else _column(chunk, "value", chunk.values, to_value, kind)
        if positions is not None:
            positions.extend(chunk.positions)
        yield keys, values


def _column(chunk: Chunk, part: str, fields: Any, convert: Callable[[Any], Any], kind: Kind) -> Any:
    dtype = kind if isinstance(kind, np.dtype) else None
    if isinstance(fields, np.ndarray):
        if dtype is not None and fields.dtype == dtype:
            return fields
        fields = list(fields) if fields.dtype.kind in "VM" else fields.tolist()
    converted = []
    try:
        for field in fields:
            converted.append(convert(field))
    except (ValueError, OverflowError) as error:
        raise BadRecord(chunk.positions[len(converted)], f"{part} {error}") from None
    return converted if dtype is None else np.array(converted, dtype)


def converter(kind: Kind) -> Callable[[Any], Any]:
    """Makes a field a value of a kind.

    It raises ValueError for what is no such thing, OverflowError for a number that a dtype does not have."""
    if not isinstance(kind, np.dtype):
        return {"bytes": _as_bytes, "str": _as_str, "json": _as_json}[kind]
    if kind.subdtype is not None:
        return _rows(converter(kind.subdtype[0]), kind)
    if kind.names is not None:
        return _row(kind, kind.names)
    if kind.kind in "SUV":
        return _fixed(kind)
    if kind.kind in "iuf":
        return _number(kind)
    return {"b": _boolean, "M": _time(kind)}[kind.kind]


def readable(dtype: np.dtype[Any]) -> bool:
    """Whether `converter` has this dtype: strings, times, truths and numbers of up to 64 bits, and records of these."""
    if dtype.subdtype is not None:
        return readable(dtype.subdtype[0])
    if dtype.names is not None:
        return all(readable(dtype[name]) for name in dtype.names)
    return dtype.kind in "SUV" or (dtype.kind in "iufbM" and dtype.itemsize <= 8)  # a text holds no long double


def _number(dtype: np.dtype[Any]) -> Callable[[Any], int | float]:
    bounds: Any = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    parse = integer if dtype.kind in "iu" else real
    low, high = parse(bounds.min), parse(bounds.max)

    def number(field: Any) -> int | float:
        value = parse(field)
        if (value < low or value > high) and not _infinite(field) and not _rounds(value):
            raise OverflowError(f"{shown(field)} is outside {dtype}")
        return value

    def _rounds(value: int | float) -> bool:  # as the text of the largest float32 does
        with np.errstate(over="ignore"):
            return dtype.kind == "f" and bool(np.isfinite(dtype.type(value)))

    return number


def _infinite(field: Any) -> bool:
    """Whether it is spelled so, and no number that is too large."""
    return (isinstance(field, bytes) and b"n" in field.lower()) or (isinstance(field, str) and field in NON_FINITE)


def _fixed(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Makes a field a string that an `S`, `U` or `V` dtype holds whole: numpy's drop NULs at the end."""

    def string(field: Any) -> Any:
        raw = _as_bytes(field)
        try:
            text = raw.decode() if dtype.kind == "U" else raw
        except UnicodeDecodeError:
            raise ValueError(f"{shown(raw)} is not UTF-8") from None
        if dtype.kind == "V":
            if len(raw) != dtype.itemsize:
                raise ValueError(f"{shown(raw)} has {len(raw)} bytes, not {dtype.itemsize}")
            return np.void(raw)
        if np.array(text, dtype).item() != text:
            raise OverflowError(f"{shown(raw)} is longer than {dtype} or ends in NUL")
        return text

    return string


def _row(dtype: np.dtype[Any], names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Makes an object or array of JSON, or a numpy record, a tuple for a structured dtype."""
    converters = {name: converter(dtype[name]) for name in names}

    def row(field: Any) -> tuple[Any, ...]:
        given = _as_json(field) if isinstance(field, bytes) else field
        if isinstance(given, np.void) and given.dtype.names:
            given = {name: _item(given[name]) for name in given.dtype.names}
        if isinstance(given, list | tuple) and len(given) == len(names):
            given = dict(zip(names, given, strict=True))
        if not isinstance(given, dict) or set(given) != set(names):
            raise ValueError(f"{shown(field)} is no record of {', '.join(names)}")
        parts = []
        for name, convert in converters.items():
            try:
                parts.append(convert(given[name]))
            except (ValueError, OverflowError) as error:
                raise type(error)(f"field {name!r}: {error}") from None
        return tuple(parts)

    return row


def _item(value: Any) -> Any:
    return value if getattr(value, "dtype", np.dtype("V1")).kind == "V" else value.tolist()


def _rows(convert: Callable[[Any], Any], dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Makes lists an array of a fixed shape within a record."""
    assert dtype.subdtype is not None
    shape = dtype.subdtype[1]

    def fitting(field: Any, shape: tuple[int, ...]) -> Any:
        if not shape:
            return convert(field)
        if not isinstance(field, list | tuple | np.ndarray) or len(field) != shape[0]:
            raise ValueError(f"{shown(field)} is not an array of {shape[0]}")
        return [fitting(part, shape[1:]) for part in field]

    return lambda field: fitting(field, shape)


def _boolean(field: Any) -> bool:
    known = {b"true": True, b"false": False, b"1": True, b"0": False}
    if isinstance(field, bytes) and field.lower() in known:
        return known[field.lower()]
    if isinstance(field, bool | np.bool_) or (isinstance(field, int) and field in (0, 1)):
        return bool(field)
    raise ValueError(f"{shown(field)} is neither true nor false")


def _time(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    def time(field: Any) -> Any:
        text = field.decode("ascii", "replace") if isinstance(field, bytes) else field
        try:
            if not isinstance(text, str | np.datetime64):
                raise ValueError
            given = np.datetime64(text)
        except ValueError:
            raise ValueError(f"{shown(field)} is no time as ISO 8601 writes it") from None
        value = given.astype(dtype)
        if value != given and not np.isnat(given):
            raise OverflowError(f"{shown(field)} is outside {dtype} or finer than it")
        return value

    return time


def integer(field: Any) -> int:
    """From decimal digits or from an integer; ValueError from anything else."""
    if isinstance(field, bytes) and b"_" not in field:
        with contextlib.suppress(ValueError):
            return int(field)
    if isinstance(field, int | np.integer) and not isinstance(field, bool):
        return int(field)
    raise ValueError(f"{shown(field)} is not an integer")


def real(field: Any) -> float:
    """From a number as Python writes it, from a number, or from what JSON writes for one that is not finite;
    ValueError from anything else."""
    if (
        (isinstance(field, bytes) and b"_" not in field)
        or (isinstance(field, int | float | np.floating) and not isinstance(field, bool))
        or (isinstance(field, str) and field in NON_FINITE)
    ):
        with contextlib.suppress(ValueError, OverflowError):
            return float(field)
        if isinstance(field, int):
            return math.copysign(math.inf, field)
    raise ValueError(f"{shown(field)} is not a number")


def _as_bytes(field: Any) -> bytes:
    if isinstance(field, bytes):
        return field
    if isinstance(field, dict) and list(field) == ["base64"] and isinstance(field["base64"], str):
        try:
            return base64.b64decode(field["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"{shown(field)} is not base64") from None
    if isinstance(field, np.void):
        return field.tobytes()
    if not isinstance(field, str):
        raise ValueError(f"{shown(field)} is not a string: --values and --key-dtype are for numbers")
    try:
        return field.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{shown(field)} is not valid Unicode") from None


def _as_key(field: Any) -> bytes | str:
    """Text stays `str`, for a store that keeps its keys gives them back as they came."""
    raw = _as_bytes(field)
    return field if isinstance(field, str) else raw


def _as_str(field: Any) -> str:
    raw = _as_bytes(field)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{shown(raw)} is not UTF-8") from None


def _as_json(field: Any) -> Any:
    """Text as what it says, anything else as it is."""
    if not isinstance(field, bytes):
        return field
    try:
        return json.loads(field, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{shown(field)} is not JSON: {error}") from None


def no_constant(name: str) -> NoReturn:
    """What JSON's own grammar does not have, but Python's reader would take."""
    raise ValueError(f"{name} is no JSON")
