"""Parquet and Arrow IPC files (and streams) to columns and back, in record batches; needs pyarrow.

Keys that are strings are `str`, values of strings and all binary are bytes; integers, floats, truths, times and structs
of them are arrays of their numpy dtype. Positions are rows from 1."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._errors import UnavailableError
from ._records import BadRecord, Chunk, Kind, Unwritable, shown
from ._text import json_bytes

ROWS = 1 << 14  # at a time


def pyarrow() -> Any:
    """Raises UnavailableError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise UnavailableError("Parquet and Arrow need pyarrow: pip install pyarrow") from None
    return pyarrow


class Columns:
    """An open Parquet or Arrow file and the two columns of it that count; close it by `with`."""

    def __init__(self, source: Path | BinaryIO, *, parquet: bool, value: bool, names: tuple[str, str]) -> None:
        """names: of the columns, or their numbers from 1. Raises BadRecord for a file of another format or a column
        that is not there, UnavailableError."""
        self._pa = pyarrow()
        self._stack = contextlib.ExitStack()
        try:
            self._open(source, parquet)
            self._names = [self._column(text) for text in names[: 1 + value]]
            self.key_dtype = self._dtype("key", self._names[0])
            if self.key_dtype is not None and self.key_dtype.kind not in "iu":
                raise BadRecord(None, f"keys are strings, binary or integers, not of dtype {self.key_dtype}")
            self.kind: Kind = None
            if value:
                text = self._is_text(self._schema.field(self._names[1]).type)
                self.kind = self._dtype("value", self._names[1]) or ("str" if text else "bytes")
        except self._pa.ArrowException as error:
            self._stack.close()
            raise BadRecord(None, f"not {'Parquet' if parquet else 'Arrow IPC'}: {error}") from None
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Columns:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _open(self, source: Path | BinaryIO, parquet: bool) -> None:
        pa = self._pa
        self.rows: int | None = None
        if isinstance(source, Path):
            source.open("rb").close()  # an OSError with its errno and name, which Arrow's has not
        if parquet:
            if not isinstance(source, Path):
                raise BadRecord(None, "Parquet is read from its end: from a file, not from a pipe")
            self._parquet = self._stack.enter_context(pa.parquet.ParquetFile(source))
            self.rows, self._schema = self._parquet.metadata.num_rows, self._parquet.schema_arrow
            self._batches = self._parquet_batches
            return
        mapped = pa.memory_map(str(source)) if isinstance(source, Path) else pa.PythonFile(source, "r")
        self._stack.enter_context(mapped)
        is_file = isinstance(source, Path) and mapped.read(6) == b"ARROW1"
        if isinstance(source, Path):
            mapped.seek(0)
        self._reader = self._stack.enter_context((pa.ipc.open_file if is_file else pa.ipc.open_stream)(mapped))
        self._schema = self._reader.schema
        self._batches = self._file_batches if is_file else lambda: iter(self._reader)

    def _parquet_batches(self) -> Iterator[Any]:
        return iter(self._parquet.iter_batches(batch_size=ROWS, columns=list(dict.fromkeys(self._names))))

    def _file_batches(self) -> Iterator[Any]:
        return map(self._reader.get_batch, range(self._reader.num_record_batches))

    def _column(self, text: str) -> str:
        names = self._schema.names
        if text not in names and text.isdecimal() and 0 < int(text) <= len(names):
            text = names[int(text) - 1]
        if names.count(text) != 1:
            raise BadRecord(None, f"{'no column' if text not in names else 'several columns'} {text!r} among {names}")
        return str(text)

    def _dtype(self, part: str, name: str) -> np.dtype[Any] | None:
        kind = self._schema.field(name).type
        empty = self._fields(self._pa.array([], kind), part, None)
        return empty.dtype if isinstance(empty, np.ndarray) else None

    def _is_text(self, kind: Any) -> bool:
        if self._pa.types.is_dictionary(kind):
            kind = kind.value_type
        return str(kind) in ("string", "large_string", "string_view")

    def chunks(self) -> Iterator[Chunk]:
        """All rows. Raises BadRecord for a null and for what cannot be read."""
        row = 1
        try:
            for batch in self._batches():
                for begin in range(0, batch.num_rows, ROWS):
                    part = batch.slice(begin, ROWS)
                    part.validate(full=True)  # offsets within bounds, strings of UTF-8: Arrow trusts the file in these
                    key, *value = (
                        self._fields(part.column(part.schema.get_field_index(name)), what, row)
                        for name, what in zip(self._names, ("key", "value"), strict=False)
                    )
                    yield Chunk(range(row, row + part.num_rows), key, value[0] if value else None)
                    row += part.num_rows
        except (self._pa.ArrowException, OSError) as error:
            raise BadRecord(row, f"cannot be read: {error}") from None

    def _fields(self, column: Any, part: str, row: int | None) -> Any:
        """A column as a list of bytes or as an array."""
        pa, kind = self._pa, column.type
        if pa.types.is_dictionary(kind):
            column = column.dictionary_decode()
            kind = column.type
        if column.null_count and row is not None:
            raise BadRecord(row + column.is_null().to_numpy(zero_copy_only=False).argmax(), f"{part} is null")
        strings = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_null)
        if self._is_text(kind) or "view" in str(kind) or any(is_kind(kind) for is_kind in strings):
            fields = column.to_pylist()
            if part == "value" and self._is_text(kind):  # as bytes, for it may be JSON
                return [field.encode() for field in fields]
            return fields
        if pa.types.is_struct(kind):
            fields = [(kind.field(i).name, self._fields(column.field(i), part, row)) for i in range(kind.num_fields)]
            if fields and all(isinstance(array, np.ndarray) for _, array in fields):
                rows = np.empty(len(column), [(name, array.dtype) for name, array in fields])
                for name, array in fields:
                    rows[name] = array
                return rows
        if pa.types.is_primitive(kind) and not pa.types.is_time(kind) and not pa.types.is_interval(kind):
            return column.to_numpy(zero_copy_only=False)
        raise BadRecord(row, f"{part} of type {kind} has no form in a store")


class ColumnWriter:
    """Writes chunks as Parquet or as an Arrow IPC file, a stream where `stream` is set."""

    def __init__(
        self, out: BinaryIO, key_dtype: np.dtype[Any] | None, kind: Kind, *,
        parquet: bool, stream: bool, names: tuple[str, str], text: tuple[bool, bool],
    ) -> None:  # fmt: skip
        """text: whether all keys, all values are UTF-8, and so a column of strings."""
        pa = self._pa = pyarrow()
        self._out, self._kind, self._parquet = out, kind, parquet
        strings = [pa.string() if is_text else pa.binary() for is_text in text]
        fields = [pa.field(names[0], strings[0] if key_dtype is None else self._type(key_dtype, strings[0]), False)]
        if kind is not None:
            value = self._type(kind, strings[1]) if isinstance(kind, np.dtype) else strings[1]
            fields.append(pa.field(names[1], value, False))
        self._schema = pa.schema(fields)
        self._open = pa.ipc.new_stream if stream else pa.ipc.new_file

    def write(self, chunks: Iterable[Chunk]) -> None:
        pa = self._pa
        opened = pa.parquet.ParquetWriter if self._parquet else self._open
        with opened(self._out, self._schema) as writer:
            for chunk in chunks:
                columns = [chunk.keys] if self._kind is None else [chunk.keys, chunk.values]
                if self._kind == "json":
                    columns[1] = [json_bytes(value) for value in chunk.values]
                arrays = [self._array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=self._schema))

    def _type(self, dtype: np.dtype[Any], strings: Any) -> Any:
        """Arrow's type of a numpy dtype."""
        pa = self._pa
        if dtype.kind == "S":
            return strings
        if dtype.kind == "U":
            return pa.string()
        if dtype.names is not None:
            return pa.struct([(name, self._type(dtype[name], pa.binary())) for name in dtype.names])
        if dtype.kind == "V" and dtype.subdtype is None:
            return pa.binary(dtype.itemsize)
        try:
            if dtype.subdtype is None:
                return pa.from_numpy_dtype(dtype)
        except pa.ArrowException:
            pass
        raise Unwritable(f"values of {dtype} have no form in Arrow")

    def _array(self, column: Any, kind: Any) -> Any:
        pa = self._pa
        if isinstance(column, np.ndarray) and column.dtype.names is not None:
            parts = [self._array(column[name], kind.field(i).type) for i, name in enumerate(column.dtype.names)]
            return pa.StructArray.from_arrays(parts, fields=list(kind))
        if isinstance(column, np.ndarray) and column.dtype.kind in "SUV":
            column = [item.tobytes() if isinstance(item, np.void) else item.item() for item in column]
        elif isinstance(column, np.ndarray):
            column = np.ascontiguousarray(column)
        try:
            return pa.array(column, kind)
        except pa.ArrowException as error:
            raise Unwritable(f"{shown(error)}") from None
