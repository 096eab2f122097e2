"""The stores of others, each in the way that its documentation recommends for data that does not change: a peer is
given what favours it (sorted bulk loads, compaction, read-only opening, no locks)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .subject import Handle, Store
from .workload import KEY_WIDTH, fixed_width


class Dict(Store):
    """The reference for batches: a plain loop over its `[key]`."""

    name = "dict"
    persistent = False

    def build(self, work: Any, path: Path) -> None:
        self._table = dict(work.pairs())
        self._integers = dict(zip(work.keys, work.numbers.tolist(), strict=True))

    def open(self, path: Path) -> Handle:
        def gather(queries: list[bytes]) -> Any:
            return np.fromiter(map(self._integers.__getitem__, queries), np.uint64, len(queries))

        return Handle(self._table.get, self._table, {"batch_list": gather})


class Lmdb(Store):
    name = module = distribution = "lmdb"
    lookup = "txn.get(key)"

    def build(self, work: Any, path: Path) -> None:
        import lmdb

        path.unlink(missing_ok=True)  # it would be updated
        size = 256 * len(work.keys) + (1 << 24)
        with (
            lmdb.open(str(path), map_size=size, subdir=False, lock=False) as database,
            database.begin(write=True) as transaction,
        ):
            transaction.cursor().putmulti(sorted(work.pairs()), append=True)

    def open(self, path: Path) -> Handle:
        import lmdb

        database = lmdb.open(str(path), subdir=False, readonly=True, lock=False)
        transaction = database.begin()

        def gather(queries: list[bytes]) -> Any:
            with transaction.cursor() as cursor:
                found = cursor.getmulti(queries)
            return np.frombuffer(b"".join([value for _, value in found]), np.uint64)

        def close() -> None:
            transaction.abort()
            database.close()

        return Handle(transaction.get, None, {"batch_list": gather}, close)


class Cdbx(Store):
    name = module = distribution = "cdbx"

    def build(self, work: Any, path: Path) -> None:
        import cdbx

        maker = cdbx.CDB.make(str(path))
        add = maker.add
        for key, value in work.pairs():
            add(key, value)
        maker.commit().close()

    def open(self, path: Path) -> Handle:
        import cdbx

        database = cdbx.CDB(str(path))
        return Handle(database.get, database, close=database.close)


class MarisaTrie(Store):
    """Its keys are text, its values lists, for a key may have several."""

    name = distribution = "marisa-trie"
    module = "marisa_trie"

    def build(self, work: Any, path: Path) -> None:
        import marisa_trie

        marisa_trie.BytesTrie((key.decode(), value) for key, value in work.pairs()).save(str(path))

    def open(self, path: Path) -> Handle:
        import marisa_trie

        trie = marisa_trie.BytesTrie()
        trie.mmap(str(path))
        return Handle(trie.get, trie)

    def prepare(self, keys: Sequence[bytes]) -> Sequence[Any]:
        return [key.decode() for key in keys]

    def number(self, found: Any) -> int:
        return int.from_bytes(found[0], "little")


class RocksDict(Store):
    """RocksDB, compacted after the build."""

    name = module = distribution = "rocksdict"

    def build(self, work: Any, path: Path) -> None:
        import rocksdict

        rocksdict.Rdict.destroy(str(path))
        database = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True))
        pairs = sorted(work.pairs())
        for begin in range(0, len(pairs), 1 << 14):
            batch = rocksdict.WriteBatch(raw_mode=True)
            for key, value in pairs[begin : begin + (1 << 14)]:
                batch.put(key, value)
            database.write(batch)
        database.flush()
        database.compact_range(None, None)
        database.close()

    def open(self, path: Path) -> Handle:
        import rocksdict

        options, access = rocksdict.Options(raw_mode=True), rocksdict.AccessType.read_only()
        database: Any = rocksdict.Rdict(str(path), options, access_type=access)

        def gather(queries: list[bytes]) -> Any:
            return np.frombuffer(b"".join(database.get(queries)), np.uint64)

        return Handle(database.get, database, {"batch_list": gather}, database.close)


class Sqlite(Store):
    """A table without row ids, so that a look-up walks one tree."""

    name = module = "sqlite3"
    lookup = "connection.execute(select, (key,)).fetchone()"

    def version(self) -> str:
        import sqlite3

        return sqlite3.sqlite_version

    def build(self, work: Any, path: Path) -> None:
        import sqlite3

        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE records (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        connection.executemany("INSERT INTO records VALUES (?, ?)", sorted(work.pairs()))
        connection.commit()
        connection.close()

    def open(self, path: Path) -> Handle:
        import sqlite3

        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        connection.execute(f"PRAGMA mmap_size = {path.stat().st_size}")
        execute = connection.execute

        def get(key: bytes) -> Any:
            return execute("SELECT value FROM records WHERE key = ?", (key,)).fetchone()

        return Handle(get, close=connection.close)

    def number(self, found: Any) -> int:
        return int.from_bytes(found[0], "little")


class DbmGnu(Store):
    name = module = "dbm.gnu"

    def build(self, work: Any, path: Path) -> None:
        import dbm.gnu

        with dbm.gnu.open(str(path), "nf") as database:
            for key, value in work.pairs():
                database[key] = value

    def open(self, path: Path) -> Handle:
        import dbm.gnu

        database = dbm.gnu.open(str(path), "r")  # noqa: SIM115 - the handle closes it
        return Handle(database.get, database, close=database.close)


class FastConstMap(Store):
    """64-bit values only. The plain map answers any key, so it keeps 9 bytes per key; the verified ones are twice as
    large. Its faster hash, where the version has it."""

    module = distribution = "fastconstmap"

    def __init__(self, kind: str, absent: str) -> None:
        self.name, self.absent, self._kind = f"fastconstmap {kind}", absent, kind

    def build(self, work: Any, path: Path) -> None:
        import fastconstmap

        kind = getattr(fastconstmap, self._kind)
        table = dict(zip(work.keys, work.numbers.tolist(), strict=True))  # it takes nothing else
        try:
            built = kind(table, hash="xxh3")
        except TypeError:
            built = kind(table)
        built.save(str(path))

    def open(self, path: Path) -> Handle:
        import fastconstmap

        table = getattr(fastconstmap, self._kind).load(str(path))

        def gather(queries: list[bytes]) -> Any:
            out = np.empty(len(queries), np.uint64)
            table.get_many_into(queries, out)
            return out

        return Handle(table.get, table, {"batch_list": gather})

    def number(self, found: Any) -> int:
        return int(found)


class SearchSorted(Store):
    """Binary search in a sorted array of keys, with the values in the same order."""

    name = "numpy.searchsorted"
    module = distribution = "numpy"
    lookup = "searchsorted(keys, key), compare, values[i]"

    def build(self, work: Any, path: Path) -> None:
        keys = fixed_width(work.keys)
        table = np.empty(len(keys), [("key", f"S{KEY_WIDTH}"), ("value", "<u8")])
        order = np.argsort(keys)
        table["key"], table["value"] = keys[order], work.numbers[order]
        with path.open("wb") as file:
            np.save(file, table["key"])
            np.save(file, table["value"])

    def open(self, path: Path) -> Handle:
        with path.open("rb") as file:
            keys, values = np.load(file), np.load(file)
        last = len(keys) - 1

        def get(key: bytes) -> Any:
            at = keys.searchsorted(key)
            return values[at] if at <= last and keys[at] == key else None

        def gather(queries: Any) -> Any:
            at = np.minimum(keys.searchsorted(queries), last)
            if not np.array_equal(keys[at], queries):
                raise KeyError
            return values[at]

        return Handle(get, None, {"batch_array": gather, "batch_list": lambda queries: gather(fixed_width(queries))})

    def number(self, found: Any) -> int:
        return int(found)


STORES: tuple[Store, ...] = (
    Dict(),
    Lmdb(),
    Cdbx(),
    MarisaTrie(),
    RocksDict(),
    Sqlite(),
    DbmGnu(),
    FastConstMap("ConstMap", "undefined"),
    FastConstMap("VerifiedConstMap", "probable"),
    FastConstMap("PairedVerifiedConstMap", "probable"),
    SearchSorted(),
)
