"""LMDB environments and SQLite tables to records and back. They are opened read-only and leave no file beside them.
Positions are records and rows from 1, in the database's own order."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

from ._records import BadRecord, Chunk, Kind, Record, Unwritable, chunked, shown
from ._text import field, json_bytes, pairs, rows

FIRST_MAP = 1 << 26  # bytes of a new LMDB environment; doubled as often as need be


@contextlib.contextmanager
def lmdb_records(path: Path, name: str | None) -> Iterator[tuple[int, Iterator[Record]]]:
    """The number of records of a database, and these: of the unnamed database, or of a named one.

    Raises BadRecord if it is no environment, or has no such database."""
    path.stat()
    directory = path.is_dir()
    lock = path / "lock.mdb" if directory else path.with_name(path.name + "-lock")
    # Without a lock file nobody has it open; with one that we may not write, there is nothing better than to read.
    locking = lock.exists() and os.access(lock, os.W_OK)
    try:
        environment = lmdb.open(str(path), subdir=directory, readonly=True, create=False, lock=locking, max_dbs=1)
    except lmdb.Error as error:
        raise BadRecord(None, f"no LMDB environment: {_reason(error)}") from None
    with environment:
        try:
            database = None if name is None else environment.open_db(name.encode(), create=False)
        except lmdb.Error as error:
            raise BadRecord(None, f"no database {name!r}: {_reason(error)}") from None
        with environment.begin(db=database) as transaction:
            yield transaction.stat()["entries"], _of_cursor(environment, transaction, named=name is not None)


def _reason(error: lmdb.Error) -> str:
    return str(error).rpartition(": ")[2]


def _of_cursor(environment: lmdb.Environment, transaction: lmdb.Transaction, named: bool) -> Iterator[Record]:
    number = 0
    try:
        for number, (raw_key, raw) in enumerate(transaction.cursor(), 1):
            key, value = bytes(raw_key), bytes(raw)
            if len(value) == 48 and not named and _is_database(environment, transaction, key):
                raise BadRecord(number, f"{shown(key)} is a database, not a record: --table {key.decode()} reads it")
            yield number, key, value
    except lmdb.Error as error:
        raise BadRecord(number + 1, f"cannot be read: {_reason(error)}") from None


def _is_database(environment: lmdb.Environment, transaction: lmdb.Transaction, key: bytes) -> bool:
    try:
        environment.open_db(key, txn=transaction, create=False)
        key.decode()
    except (lmdb.Error, UnicodeDecodeError):
        return False
    return True


def write_lmdb(path: Path, chunks: Iterable[Chunk], kind: Kind, name: str | None) -> None:
    """A new environment in a directory, which appears whole or not at all.

    Raises Unwritable for keys that LMDB does not take, FileExistsError if there is something of that name."""
    if path.exists():
        raise FileExistsError(17, "exists; remove it first, for an environment is not replaced at one blow", str(path))
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.mphtmp")
    temporary.mkdir()
    try:
        with lmdb.open(str(temporary), map_size=FIRST_MAP, max_dbs=1, sync=False) as environment:
            database = None if name is None else environment.open_db(name.encode())
            longest = environment.max_key_size()
            for chunk in chunks:
                records = [(row[0], row[1] if row[1:] else b"") for row in rows(chunk, kind)]
                for key, _ in records:
                    if not 0 < len(key) <= longest:
                        raise Unwritable(f"LMDB takes keys of 1 to {longest} bytes, and {shown(key)} has {len(key)}")
                _put(environment, database, records)
            environment.sync(True)
        (temporary / "lock.mdb").unlink(missing_ok=True)
        os.rename(temporary, path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _put(environment: lmdb.Environment, database: Any, records: list[tuple[bytes, bytes]]) -> None:
    while True:
        try:
            with environment.begin(write=True, db=database) as transaction:
                transaction.cursor().putmulti(records)
            return
        except lmdb.MapFullError:
            environment.set_mapsize(2 * environment.info()["map_size"])


class Table:
    """A table or view of an SQLite file, opened read-only; close it by `with`.

    The first row tells the type: integer keys are int64, integer and real values int64 and float64; all else is bytes,
    texts as UTF-8."""

    def __init__(self, path: Path, *, name: str | None, value: bool, columns: tuple[str, str]) -> None:
        """columns: names, or numbers from 1. Raises BadRecord if it is no SQLite file or has no such table or
        column."""
        path.stat()
        try:
            self._connection = sqlite3.connect(_address(path), uri=True, isolation_level=None)
            self._connection.text_factory = bytes
            try:
                self._select(name, columns[: 1 + value])
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise BadRecord(None, f"no SQLite database: {error}") from None
        key, *rest = self._first or (b"", b"")
        self.key_dtype = np.dtype("<i8") if isinstance(key, int) else None
        first = rest[0] if rest else None
        number = np.dtype("<i8") if isinstance(first, int) else np.dtype("<f8")
        self.kind: Kind = None if not value else number if isinstance(first, int | float) else "bytes"

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def _select(self, name: str | None, columns: tuple[str, ...]) -> None:
        query = self._connection.execute
        listed = query(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        tables = [table.decode() for (table,) in listed]
        if name is None and len(tables) != 1:
            raise BadRecord(None, f"--table is one of {', '.join(tables)}" if tables else "there is no table")
        name = name or tables[0]
        if name.lower() not in map(str.lower, tables):
            raise BadRecord(None, f"no table {name!r} among {', '.join(tables) or 'none'}")
        names = [row[1].decode() for row in query(f"PRAGMA table_info({_quoted(name)})")]
        chosen = [_quoted(self._column(text, names)) for text in columns]
        self._cursor = query(f"SELECT {', '.join(chosen)} FROM {_quoted(name)}")
        self._first = self._cursor.fetchone()

    @staticmethod
    def _column(text: str, names: list[str]) -> str:
        if text.lower() not in map(str.lower, names):
            if not text.isdecimal() or not 0 < int(text) <= len(names):
                raise BadRecord(None, f"no column {text!r} among {', '.join(names)}")
            return names[int(text) - 1]
        return text

    def chunks(self) -> Iterator[Chunk]:
        """All rows. Raises BadRecord for NULL, and for what cannot be read."""
        return chunked(self._records())

    def _records(self) -> Iterator[Record]:
        number = 0
        try:
            first = [] if self._first is None else [self._first]
            for number, row in enumerate(itertools.chain(first, self._cursor), 1):
                for part, item in zip(("key", "value"), row, strict=False):
                    if item is None:
                        raise BadRecord(number, f"{part} is NULL")
                yield number, row[0], row[-1]
        except sqlite3.Error as error:
            raise BadRecord(number + 1, f"cannot be read: {error}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _address(path: Path) -> str:
    """The file as SQLite's address, read-only. One with a write-ahead log would get two files beside it even then;
    where nobody has it open, it is as good as immutable."""
    with path.open("rb") as file:
        head = file.read(20)
    wal = head[18:20] == b"\2\2" and not path.with_name(path.name + "-wal").exists()
    return f"file:{urllib.parse.quote(str(path.absolute()))}?mode=ro{'&immutable=1' if wal else ''}"


def write_sqlite(
    path: Path,
    chunks: Iterable[Chunk],
    key_dtype: np.dtype[Any] | None,
    kind: Kind,
    *,
    table: str,
    names: tuple[str, str],
) -> None:
    """A new database in an empty file. Bytes that are UTF-8 without NULs are TEXT, others BLOB; records of several
    fields are JSON. Keys get a unique index."""
    columns = [f"{_quoted(names[0])} {'TEXT' if key_dtype is None else 'INTEGER'} NOT NULL"]
    if kind is not None:
        numeric = {"i": "INTEGER", "u": "INTEGER", "b": "INTEGER", "f": "REAL"}
        columns.append(
            f"{_quoted(names[1])} {numeric.get(kind.kind, 'TEXT') if isinstance(kind, np.dtype) else 'TEXT'} NOT NULL"
        )
    with contextlib.closing(sqlite3.connect(str(path), isolation_level=None)) as connection:
        run = connection.execute
        run("PRAGMA journal_mode = OFF")
        run("PRAGMA synchronous = OFF")
        run("BEGIN")
        run(f"CREATE TABLE {_quoted(table)} ({', '.join(columns)})")
        insert = f"INSERT INTO {_quoted(table)} VALUES ({', '.join('?' * len(columns))})"
        for chunk in chunks:
            cells = ([_cell(key), _cell(value, kind)][: len(columns)] for key, value in pairs(chunk))
            try:
                connection.executemany(insert, cells)
            except OverflowError:
                raise Unwritable("SQLite's integers have 64 bits and a sign, and one of these is larger") from None
        run(f"CREATE UNIQUE INDEX {_quoted(table + '_' + names[0])} ON {_quoted(table)} ({_quoted(names[0])})")
        run("COMMIT")


def _cell(item: Any, kind: Kind = None) -> Any:
    """A key or value as SQLite has it."""
    if isinstance(item, np.generic) and item.dtype.kind in "iufb":
        item = item.item()
        if item != item:
            raise Unwritable("SQLite has no NaN: it would be NULL")
    if item is None and kind is None:
        return None
    if isinstance(item, int | float) and kind != "json":
        return item
    raw = json_bytes(item) if kind == "json" else field(item)
    with contextlib.suppress(UnicodeDecodeError):
        return raw if b"\0" in raw else raw.decode()
    return raw
