"""Text: lines of TSV, CSV or JSON to records and back, each record with the number of its line (from 1).

Text is never decoded for good: bytes that are not UTF-8 come out of a TSV or CSV file as they went in. Every writer
here writes what its reader takes for the same records, or refuses."""

from __future__ import annotations

import base64
import csv
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from ._records import BadRecord, Chunk, Kind, Record, Unwritable, no_constant, shown

ESCAPES = {b"\\t": b"\t", b"\\n": b"\n", b"\\r": b"\r", b"\\\\": b"\\"}
ESCAPED = {byte: escape for escape, byte in ESCAPES.items()}
BOM = b"\xef\xbb\xbf"


def tsv(lines: Iterable[bytes], *, values: bool, escape: bool = False) -> Iterator[Record]:
    """The first tab ends the key, "\\n" or "\\r\\n" the line. `escape`: \\t, \\n, \\r and \\\\ are such bytes."""
    for number, line in enumerate(lines, 1):
        text = line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")
        key, tab, value = text.partition(b"\t")
        if values and not tab:
            raise BadRecord(number, f"no tab in {shown(text)}: expected KEY<TAB>VALUE")
        if escape and b"\\" in text:
            key, value = _unescaped(number, key), _unescaped(number, value)
        yield number, key, value


def _unescaped(number: int, field: bytes) -> bytes:
    def meant(found: re.Match[bytes]) -> bytes:
        if found[0] not in ESCAPES:
            raise BadRecord(number, f"{shown(found[0])} in {shown(field)} is no escape: \\t, \\n, \\r and \\\\ are")
        return ESCAPES[found[0]]

    return re.sub(rb"\\.?", meant, field, flags=re.DOTALL)


def write_tsv(out: BinaryIO, chunks: Iterable[Chunk], kind: Kind, *, escape: bool) -> None:
    """Raises Unwritable for a key or value with a tab or the end of a line in it, unless these are escaped."""
    for chunk in chunks:
        lines = []
        for fields in rows(chunk, kind):
            if escape:
                fields = tuple(re.sub(rb"[\t\n\r\\]", lambda found: ESCAPED[found[0]], field) for field in fields)
            elif found := next((field for field in fields if re.search(rb"[\t\n\r]", field)), None):
                raise Unwritable(
                    f"{shown(found)} has a tab or an end of line in it, which --escape writes as \\t and \\n"
                )
            lines.append(b"\t".join(fields) + b"\n")
        out.write(b"".join(lines))


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
            raise BadRecord(number, "no header line")
        columns = [_column(text, names) for text in (key_column, value_column)[: 1 + values]]
        number = rows.line_num + 1
        for row in rows:
            if row:
                if len(row) <= max(columns):
                    raise BadRecord(number, f"expected at least {max(columns) + 1} columns, got {len(row)}")
                fields = [row[column].encode("utf-8", "surrogateescape") for column in columns]
                yield number, fields[0], fields[-1]
            number = rows.line_num + 1
    except csv.Error as error:
        raise BadRecord(number, f"not CSV: {error}") from None


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield (line if number else line.removeprefix(BOM)).decode("utf-8", "surrogateescape")


def _column(text: str, names: list[str] | None) -> int:
    if names and text in names:
        return names.index(text)
    if text.isdecimal() and int(text):
        return int(text) - 1
    raise BadRecord(1, f"no column {text!r}" + (f" in the header {names}" if names else ": a name needs --header"))


def write_csv(
    out: BinaryIO, chunks: Iterable[Chunk], kind: Kind, *, delimiter: str, header: tuple[str, str] | None
) -> None:
    """Fields are quoted where they have to be; lines end as RFC 4180 wants it."""
    between = delimiter.encode()
    special = re.compile(b'["\r\n]|' + re.escape(between) + b"|^" + BOM)

    def line(fields: Iterable[bytes]) -> bytes:
        quoted = (b'"' + f.replace(b'"', b'""') + b'"' if special.search(f) else f for f in fields)
        return (between.join(quoted) or b'""') + b"\r\n"  # a blank line would be none

    if header:
        out.write(line(name.encode() for name in header[: 1 if kind is None else 2]))
    for chunk in chunks:
        out.write(b"".join(map(line, rows(chunk, kind))))


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
            raise BadRecord(number, f"not JSON: {error.msg} (column {error.colno})") from None
        except (ValueError, RecursionError) as error:
            raise BadRecord(number, f"not JSON: {error}") from None
        if isinstance(record, dict) and (values or list(record) != ["base64"]):
            for field in (key_field, value_field)[: 1 + values]:
                if field not in record:
                    raise BadRecord(number, f"no field {field!r}")
            yield number, record[key_field], record[value_field] if values else b""
        elif isinstance(record, list) and (len(record) == 2 or (len(record) == 1 and not values)):
            yield number, record[0], record[1] if values else b""
        elif not (values or isinstance(record, list)):
            yield number, record, b""
        else:
            raise BadRecord(number, f"expected {expected}, got {shown(record)}")


def write_json_lines(out: BinaryIO, chunks: Iterable[Chunk], kind: Kind, *, key_field: str, value_field: str) -> None:
    """An object per record: strings where bytes are UTF-8, else {"base64": "..."}; numbers that are not finite are
    "NaN", "Infinity" and "-Infinity"."""
    for chunk in chunks:
        lines = []
        for key, value in pairs(chunk):
            record = {key_field: json_form(key)}
            if kind is not None:
                record[value_field] = value if kind == "json" else json_form(value)
            lines.append(json_bytes(record) + b"\n")
        out.write(b"".join(lines))


def pairs(chunk: Chunk) -> Iterable[tuple[Any, Any]]:
    return zip(chunk.keys, chunk.values if chunk.values is not None else [None] * len(chunk.keys), strict=True)


def rows(chunk: Chunk, kind: Kind) -> Iterator[tuple[bytes, ...]]:
    """Records as fields of bytes, for formats that know nothing else; one field where there are no values."""
    for key, value in pairs(chunk):
        yield (field(key),) if kind is None else (field(key), json_bytes(value) if kind == "json" else field(value))


def field(value: Any) -> bytes:
    """A key or value as the text that `converter` of its type reads."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.void):
        return json_bytes(json_form(value)) if value.dtype.names else value.tobytes()
    return str(value).encode()


def json_bytes(value: Any) -> bytes:
    """JSON in UTF-8. Raises Unwritable for what JSON does not have."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can write
        return json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise Unwritable(f"{shown(value)} is not JSON: {error}") from None


def json_form(value: Any, exact: bool = True) -> Any:
    """A value in JSON's types: bytes that are not UTF-8 as {"base64": …}; numbers that are not finite by name, or
    inexactly as null."""
    if isinstance(value, dict):
        return {name: json_form(item, exact) for name, item in value.items()}
    if isinstance(value, np.void) and value.dtype.names:
        return {name: json_form(value[name], exact) for name in value.dtype.names}
    if isinstance(value, list | tuple | np.ndarray):
        return [json_form(item, exact) for item in value]
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    if isinstance(value, np.generic):
        value = value.tobytes() if isinstance(value, np.void) else value.item()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return None if not exact else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
