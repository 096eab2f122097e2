"""Formats by name: which one a file has, opening it as a source of records, writing records to it.

    _text       tsv csv jsonl       _cdbmake    cdbmake         _columnar   parquet arrow
    _databases  lmdb sqlite         _contents   store

Everything streams: a source gives chunks, a writer takes them."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from . import _databases, _text
from ._cdbmake import cdbmake, write_cdbmake
from ._columnar import Columns, ColumnWriter
from ._contents import chunks_of, has_keys, is_text, types_of
from ._format import MAGIC
from ._open import open as open_store
from ._publish import Publication
from ._records import BadRecord, Chunk, Kind, Unwritable, chunked, readable
from ._store import Store

SUFFIXES = {
    "tsv": (".tsv", ".tab", ".txt"),
    "csv": (".csv",),
    "jsonl": (".jsonl", ".ndjson"),
    "cdbmake": (".cdbmake",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc", ".arrows"),
    "lmdb": (".lmdb", ".mdb"),
    "sqlite": (".sqlite", ".sqlite3", ".db"),
    "store": (".mph", ".mphf"),
}
FORMATS = tuple(SUFFIXES)
WRITABLE = FORMATS[:-1]
MAGICS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"SQLite format 3\0": "sqlite", MAGIC: "store"}
LMDB_MAGIC = b"\xde\xc0\xef\xbe"  # 16 bytes into the file, behind the head of its first page
UNITS = {"cdbmake": "byte", "parquet": "row", "arrow": "row", "sqlite": "row", "lmdb": "record", "store": "record"}
COLUMNS = ("key_column", "value_column")
TAKES = {
    "tsv": ("escape",),
    "csv": ("header", "delimiter", *COLUMNS),
    "jsonl": COLUMNS,
    "parquet": COLUMNS,
    "arrow": COLUMNS,
    "lmdb": ("table",),
    "sqlite": ("table", *COLUMNS),
}


@dataclass(frozen=True)
class Layout:
    """How a file is laid out, where a format has a choice."""

    escape: bool = False
    header: bool = False
    delimiter: str | None = None
    key_column: str | None = None
    value_column: str | None = None
    table: str | None = None

    def check(self, kind: str) -> None:
        """Raises ValueError for a choice that a format does not have."""
        for option in fields(self):
            if getattr(self, option.name) and option.name not in TAKES.get(kind, ()):
                raise ValueError(f"--{option.name.replace('_', '-')} is not for {kind}")

    def columns(self, *default: str) -> tuple[str, str]:
        return self.key_column or default[0], self.value_column or default[1]

    def separator(self) -> str:
        delimiter = "\t" if self.delimiter == "\\t" else self.delimiter or ","
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ValueError(f"--delimiter is one character, not {self.delimiter!r}")
        return delimiter


def format_of(path: str) -> str | None:
    """A file's format: what its first bytes say, else its suffix."""
    with contextlib.suppress(OSError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode) and os.path.exists(os.path.join(path, "data.mdb")):
            return "lmdb"
        if stat.S_ISREG(mode):
            with open(path, "rb") as file:
                head = file.read(20)
            found = next((kind for magic, kind in MAGICS.items() if head.startswith(magic)), None)
            if found or head[16:] == LMDB_MAGIC:
                return found or "lmdb"
    return format_by_suffix(path)


def format_by_suffix(path: str) -> str | None:
    suffix = Path(path).suffix.lower()
    return next((kind for kind, suffixes in SUFFIXES.items() if suffix in suffixes), None)


@dataclass(frozen=True)
class Source:
    """Records of a file that is open: their chunks, and the types it declares."""

    name: str
    unit: str
    chunks: Iterator[Chunk]
    key_dtype: np.dtype[Any] | None
    kind: Kind  # None if no values are asked for
    part_read: Callable[[int], float | None]  # of all, after so many records

    def at(self, position: int | None) -> str:
        """The source and a place in it, as a message starts."""
        if position is None:
            return self.name
        return f"{self.name}:{position}" if self.unit == "line" else f"{self.name}: {self.unit} {position}"

    def place(self, position: int) -> str:
        return f"{'at' if self.unit == 'byte' else 'in'} {self.unit} {position}"


@contextlib.contextmanager
def source(path: str, kind: str, layout: Layout, *, values: bool) -> Iterator[Source]:
    """Opens a file, `-` for standard input. values: whether they are asked for.

    Raises OSError, ValueError – also for a BadRecord in its block, of which it names the place –, UnavailableError."""
    layout.check(kind)
    name, unit = "<stdin>" if path == "-" else path, UNITS.get(kind, "line")
    opened: Source | None = None
    try:
        with ExitStack() as stack:
            chunks, key_dtype, declared, part_read = _open(stack, path, name, kind, layout, values)
            opened = Source(name, unit, chunks, key_dtype, declared if values else None, part_read)
            yield opened
    except BadRecord as error:
        place = (opened or Source(name, unit, iter(()), None, None, lambda _: None)).at(error.position)
        raise ValueError(f"{place}: {error}") from None


def _open(stack: ExitStack, path: str, name: str, kind: str, layout: Layout, values: bool) -> Any:
    """Chunks, dtype of the keys, kind of the values, and how much of it is read."""
    if kind in ("lmdb", "sqlite", "store") and path == "-":
        raise ValueError(f"{kind} is read from a file, not from standard input")
    if kind == "lmdb":
        total, records = stack.enter_context(_databases.lmdb_records(Path(path), layout.table))
        return chunked(records), None, "bytes", lambda done: done / max(1, total)
    if kind == "sqlite":
        columns = layout.columns("1", "2")
        table = stack.enter_context(_databases.Table(Path(path), name=layout.table, value=values, columns=columns))
        return table.chunks(), table.key_dtype, table.kind, lambda done: None
    if kind == "store":
        store = stack.enter_context(open_with_keys(path))
        key_dtype, declared = types_of(store)
        if values and declared is None:
            raise ValueError(f"{path}: this store has no values: --values none takes its keys")
        return chunks_of(store), key_dtype, declared, lambda done: done / max(1, len(store))
    if kind in ("parquet", "arrow"):
        from_file: Any = standard_input() if path == "-" else Path(path)
        names = layout.columns("1", "2")
        read = stack.enter_context(Columns(from_file, parquet=kind == "parquet", value=values, names=names))
        return read.chunks(), read.key_dtype, read.kind, lambda done: read.rows and done / read.rows
    file = standard_input() if path == "-" else stack.enter_context(open(path, "rb"))  # noqa: SIM115
    lines, (key, value) = _lines(file, name), layout.columns("1", "2")
    if kind == "tsv":
        records = _text.tsv(lines, values=values, escape=layout.escape)
    elif kind == "csv":
        records = _text.delimited(
            lines, values=values, delimiter=layout.separator(), header=layout.header, key_column=key, value_column=value
        )
    elif kind == "jsonl":
        key, value = layout.columns("key", "value")
        records = _text.json_lines(lines, values=values, key_field=key, value_field=value)
    else:
        records = cdbmake(file)
    status = os.fstat(file.fileno()) if path != "-" else None
    size = status.st_size if status and stat.S_ISREG(status.st_mode) else 0
    return chunked(records), None, "bytes", lambda done: file.tell() / size if size else None


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        yield from file
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None


def standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    return sys.stdin.buffer


def open_with_keys(path: str) -> Store:
    """A store whose keys can be listed. Raises ValueError for anything else."""
    store = open_store(path)
    if isinstance(store, Store) and has_keys(store):
        return store
    kind = store.info()["kind"]
    store.close()
    if kind != "store":
        raise ValueError(f"{path} is a {kind}: it has no records")
    raise ValueError(f"{path}: this store keeps fingerprints, not its keys: build it with --keys exact")


def write(
    path: str, kind: str, layout: Layout, key_dtype: np.dtype[Any] | None, values: Kind,
    chunks: Callable[[bool], Iterator[Chunk]],
) -> None:  # fmt: skip
    """Writes records to a file, `-` for standard output: it appears whole or not at all.

    chunks: the records, once more at every call; it is told whether this is the pass that writes. Raises Unwritable for
    a record that the format has no form for, OSError, UnavailableError."""
    layout.check(kind)
    if kind not in ("parquet", "arrow") and isinstance(values, np.dtype) and not readable(values):
        raise Unwritable(f"values of {values} have no form in {kind}")
    if kind == "lmdb" or path == "-":
        if path == "-" and kind in ("lmdb", "sqlite"):
            raise ValueError(f"{kind} is written to a file, not to standard output")
        if kind == "lmdb":
            _databases.write_lmdb(Path(path), chunks(True), values, layout.table)
            return
        if sys.stdout is None:
            raise ValueError("standard output is closed")
        _write(sys.stdout.buffer, True, kind, layout, key_dtype, values, chunks)
        return
    with Publication(path) as target:
        if kind == "sqlite":
            _databases.write_sqlite(
                target.temporary, chunks(True), key_dtype, values,
                table=layout.table or "records", names=layout.columns("key", "value"),
            )  # fmt: skip
            return
        stream = path.endswith(".arrows")
        with _Appending(target) as out:
            _write(out, stream, kind, layout, key_dtype, values, chunks)


def _write(
    out: Any, stream: bool, kind: str, layout: Layout, key_dtype: np.dtype[Any] | None, values: Kind,
    chunks: Callable[[bool], Iterator[Chunk]],
) -> None:  # fmt: skip
    names = layout.columns("key", "value")
    if kind == "tsv":
        _text.write_tsv(out, chunks(True), values, escape=layout.escape)
    elif kind == "csv":
        header = names if layout.header else None
        _text.write_csv(out, chunks(True), values, delimiter=layout.separator(), header=header)
    elif kind == "jsonl":
        _text.write_json_lines(out, chunks(True), values, key_field=names[0], value_field=names[1])
    elif kind == "cdbmake":
        write_cdbmake(out, chunks(True), values)
    else:
        strings = isinstance(values, np.dtype) and values.kind == "S"
        text = (
            key_dtype is None and is_text(chunk.keys for chunk in chunks(False)),
            values in ("str", "json")
            or ((values == "bytes" or strings) and is_text(chunk.values for chunk in chunks(False))),
        )
        ColumnWriter(out, key_dtype, values, parquet=kind == "parquet", stream=stream, names=names, text=text).write(
            chunks(True)
        )


class _Appending(RawIOBase):
    """A publication as a file to write to."""

    def __init__(self, target: Publication) -> None:
        self._target, self._end = target, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._end

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._target.write_at(view, self._end)
        self._end += len(view)
        return len(view)
