"""Records from text: TSV, CSV and JSON lines, as chunks of keys and values for a `Builder`."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

FORMATS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
CHUNK = 1 << 16  # records

Record = tuple[int, Any, Any]  # line, from 1; key; value or None


class RecordError(ValueError):
    """A line that holds no record; the message begins with the file's name and the line."""


def read_tsv(stream: BinaryIO, name: str, with_values: bool) -> Iterator[Record]:
    """Bytes as they are, up to the first tab and after it; a line end is \\n or \\r\\n."""
    for line, text in enumerate(stream, 1):
        text = text.removesuffix(b"\n").removesuffix(b"\r")
        key, tab, value = text.partition(b"\t")
        if with_values and not tab:
            raise RecordError(f"{name}:{line}: no tab between key and value: {text[:60]!r}")
        yield line, key, value


def read_csv(
    stream: BinaryIO, name: str, with_values: bool, *, header: bool, delimiter: str, key_column: str, value_column: str
) -> Iterator[Record]:
    """Columns by number from 1, or with a header line by name, too."""
    lines = (line.decode("utf-8-sig" if first == 0 else "utf-8") for first, line in enumerate(stream))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        names = next(reader, []) if header else []
        wanted = [_column(column, names, name) for column in (key_column, value_column)[: 1 + with_values]]
        for row in reader:
            if not row:
                continue
            if len(row) <= max(wanted):
                raise RecordError(f"{name}:{reader.line_num}: {len(row)} columns, none numbered {max(wanted) + 1}")
            yield reader.line_num, row[wanted[0]], row[wanted[-1]]
    except (csv.Error, UnicodeDecodeError) as error:
        raise RecordError(f"{name}:{reader.line_num + 1}: {error}") from None


def _column(column: str, names: list[str], file: str) -> int:
    if column in names:
        return names.index(column)
    if column.isdecimal() and int(column) >= 1:
        return int(column) - 1
    raise RecordError(
        f"{file}: no column {column!r}" + (f" among {', '.join(names)}" if names else "; --header names them")
    )


def read_jsonl(
    stream: BinaryIO, name: str, with_values: bool, *, key_column: str, value_column: str
) -> Iterator[Record]:
    """Objects with a field for the key and one for the value, or arrays [key, value]; blank lines do not count."""
    for line, text in enumerate(stream, 1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
            if isinstance(record, dict):
                yield line, record[key_column], record[value_column] if with_values else None
            elif with_values:
                key, value = record
                yield line, key, value
            else:
                yield line, record[0] if isinstance(record, list) else record, None
        except KeyError as error:
            raise RecordError(f"{name}:{line}: no field {error.args[0]!r}") from None
        except (ValueError, TypeError, IndexError, RecursionError):
            raise RecordError(
                f"{name}:{line}: neither an object nor an array of key and value: {text[:60]!r}"
            ) from None


def chunks(records: Iterable[Record]) -> Iterator[tuple[list[int], list[Any], list[Any]]]:
    """Lines, keys and values of up to CHUNK records at a time."""
    records = iter(records)
    while chunk := list(itertools.islice(records, CHUNK)):
        lines, keys, values = zip(*chunk, strict=True)
        yield list(lines), list(keys), list(values)
