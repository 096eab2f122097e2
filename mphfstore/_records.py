"""Records of text: lines of TSV, CSV or JSON as keys and values, each with the number of its line (from 1).

    lines   → Record (line, key, value)        one reader per format; fields are bytes, JSON's are what JSON has
    field   → bytes, int or float              `converter`, which knows the dtype and its bounds

Text is never decoded for good: bytes that are not UTF-8 come out of a TSV or CSV file as they went in."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import math
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

Record = tuple[int, Any, Any]

SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}  # all others: tsv
CHUNK = 4096  # records that are Python objects at a time


class BadLine(ValueError):
    """A line that is no record, and what is wrong with it."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def shown(field: object) -> str:
    """A field as it is named in a message: bytes as text where they are UTF-8, and not too long."""
    if isinstance(field, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            field = field.decode()
    return shortened(repr(field))


def shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."


def batches(
    records: Iterator[Record],
    lines: array[int],
    key_dtype: np.dtype[Any] | None,
    value_dtype: np.dtype[Any] | str | None,
) -> Iterator[tuple[Any, Any]]:
    """Keys and values of some records at a time, as lists of bytes or arrays; `lines` gets every record's line.

    Raises BadLine for a key or value of another type."""
    to_key, to_value = converter(key_dtype), converter(value_dtype)
    while True:
        keys, values, line, part = [], [], 0, ""
        try:
            for line, key, value in itertools.islice(records, CHUNK):
                part = "key"
                keys.append(to_key(key))
                part = "value"
                values.append(to_value(value))
                lines.append(line)
        except BadLine:
            raise
        except (ValueError, OverflowError) as error:
            raise BadLine(line, f"{part} {error}") from None
        if not keys:
            return
        yield (
            keys if key_dtype is None else np.array(keys, key_dtype),
            np.array(values, value_dtype) if isinstance(value_dtype, np.dtype) else values,
        )


def converter(dtype: np.dtype[Any] | str | None) -> Callable[[Any], Any]:
    """Makes a field a number of a dtype, text for "str", what JSON has for "json", or bytes.

    It raises ValueError for what is no such thing, OverflowError for a number that the dtype does not have."""
    if not isinstance(dtype, np.dtype):
        return {"str": _as_text, "json": _as_json}.get(dtype or "bytes", _as_bytes)
    if dtype.kind in "SU":
        return _fixed(dtype)
    bounds: Any = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    parse = integer if dtype.kind in "iu" else real
    low, high = parse(bounds.min), parse(bounds.max)

    def number(field: Any) -> int | float:
        value = parse(field)
        if (value < low or value > high) and not (
            isinstance(field, bytes) and b"n" in field.lower()
        ):  # inf, spelled so
            raise OverflowError(f"{shown(field)} is outside {dtype}")
        return value

    return number


def _fixed(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Makes a field a string that an `S` or `U` dtype holds whole: numpy's drop NULs at the end."""

    def string(field: Any) -> Any:
        raw = _as_bytes(field)
        try:
            text = raw if dtype.kind == "S" else raw.decode()
        except UnicodeDecodeError:
            raise ValueError(f"{shown(raw)} is not UTF-8") from None
        if np.array(text, dtype).item() != text:
            raise OverflowError(f"{shown(raw)} is longer than {dtype} or ends in NUL")
        return text

    return string


def integer(field: Any) -> int:
    """From decimal digits or from an integer; ValueError from anything else."""
    if isinstance(field, bytes) and b"_" not in field:
        with contextlib.suppress(ValueError):
            return int(field)
    if isinstance(field, int) and not isinstance(field, bool):
        return field
    raise ValueError(f"{shown(field)} is not an integer")


def real(field: Any) -> float:
    """From a number as Python writes it, or from a number; ValueError from anything else."""
    if (isinstance(field, bytes) and b"_" not in field) or (
        isinstance(field, int | float | np.floating) and not isinstance(field, bool)
    ):
        with contextlib.suppress(ValueError, OverflowError):
            return float(field)
        if isinstance(field, int):
            return math.copysign(math.inf, field)
    raise ValueError(f"{shown(field)} is not a number")


def _as_bytes(field: Any) -> bytes:
    if isinstance(field, bytes):
        return field
    if not isinstance(field, str):
        raise ValueError(f"{shown(field)} is not a string: --values and --key-dtype are for numbers")
    try:
        return field.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{shown(field)} is not valid Unicode") from None


def _as_text(field: Any) -> str:
    raw = _as_bytes(field)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{shown(raw)} is not UTF-8") from None


def _as_json(field: Any) -> Any:
    """A field of text is JSON text; what JSON lines have is a value already."""
    if not isinstance(field, bytes):
        return field
    try:
        return json.loads(field.decode(), parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{shown(field)} is not JSON: {error}") from None


def tsv(lines: Iterable[bytes], *, values: bool) -> Iterator[Record]:
    """The first tab ends the key, "\\n" or "\\r\\n" the line."""
    for number, line in enumerate(lines, 1):
        text = line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")
        key, tab, value = text.partition(b"\t")
        if values and not tab:
            raise BadLine(number, f"no tab in {shown(text)}: expected KEY<TAB>VALUE")
        yield number, key, value


def delimited(
    lines: Iterable[bytes], *, values: bool, delimiter: str, header: bool, key_column: str, value_column: str
) -> Iterator[Record]:
    """CSV as RFC 4180 has it. Columns are names of the header or numbers from 1; a record's line is its first."""
    csv.field_size_limit(sys.maxsize)
    rows = csv.reader(_decoded(lines), delimiter=delimiter, strict=True)
    number = 1
    try:
        names = next((row for row in rows if row), None) if header else None
        if header and names is None:
            raise BadLine(number, "no header line")
        columns = [_column(text, names) for text in (key_column, value_column)[: 1 + values]]
        number = rows.line_num + 1
        for row in rows:
            if row:
                if len(row) <= max(columns):
                    raise BadLine(number, f"expected at least {max(columns) + 1} columns, got {len(row)}")
                fields = [row[column].encode("utf-8", "surrogateescape") for column in columns]
                yield number, fields[0], fields[-1]
            number = rows.line_num + 1
    except csv.Error as error:
        raise BadLine(number, f"not CSV: {error}") from None


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield (line if number else line.removeprefix(b"\xef\xbb\xbf")).decode("utf-8", "surrogateescape")


def _column(text: str, names: list[str] | None) -> int:
    if names and text in names:
        return names.index(text)
    if text.isdecimal() and int(text):
        return int(text) - 1
    raise BadLine(1, f"no column {text!r}" + (f" in the header {names}" if names else ": a name needs --header"))


def json_lines(lines: Iterable[bytes], *, values: bool, key_field: str, value_field: str) -> Iterator[Record]:
    """Per line an array [key, value] or an object; a lone key, too, where no values are asked for."""
    decode = json.JSONDecoder(parse_constant=no_constant).decode
    expected = "[key, value] or an object" if values else "a key, an array that starts with one, or an object"
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            record = decode(line.decode("utf-8-sig"))
        except json.JSONDecodeError as error:
            raise BadLine(number, f"not JSON: {error.msg} (column {error.colno})") from None
        except (ValueError, RecursionError) as error:
            raise BadLine(number, f"not JSON: {error}") from None
        if isinstance(record, dict):
            for field in (key_field, value_field)[: 1 + values]:
                if field not in record:
                    raise BadLine(number, f"no field {field!r}")
            yield number, record[key_field], record[value_field] if values else b""
        elif isinstance(record, list) and (len(record) == 2 or (len(record) == 1 and not values)):
            yield number, record[0], record[1] if values else b""
        elif not (values or isinstance(record, list)):
            yield number, record, b""
        else:
            raise BadLine(number, f"expected {expected}, got {shown(record)}")


def no_constant(name: str) -> NoReturn:
    """What JSON's own grammar does not have, but Python's reader would take."""
    raise ValueError(f"{name} is no JSON")
