"""LMDB environments as the overlay needs them: one per directory and process however often it is opened, its map
grows by itself, and a forked child starts afresh.

    Environment   the handle that all overlays of a directory share, closed when nobody refers to it any more
    Pinned        a read transaction: what it reads never changes, not even when the map grows under it

LMDB may be opened once per process only (its locks are fcntl's), may not be used across fork, and its map may not
grow under a transaction of the same process. The first is a table of open environments, the second a hook on fork;
before the third, what is still pinned is copied into memory."""

from __future__ import annotations

import bisect
import contextlib
import errno
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import lmdb

T = TypeVar("T")

MAP_SIZE = 1 << 30  # bytes of addresses, not of disk
LONGEST_KEY = 511  # bytes
READERS = 1024  # read transactions at a time, of all processes
CHUNK = 1024  # records read under one hold of the lock
DATABASES = (b"entries", b"log", b"state")

_open: weakref.WeakValueDictionary[tuple[int, int], Environment] = weakref.WeakValueDictionary()
_table = threading.RLock()


class Inherited(RuntimeError):
    """A transaction of the parent process."""


class Environment:
    """An LMDB environment of the databases DATABASES."""

    def __init__(self, path: Path, create: bool, writable: bool, durable: bool, map_size: int) -> None:
        self.path, self.writable, self.durable = path, writable, durable
        # Taken in this order: `write_lock` keeps other writers of the process out, `lock` the map where it is.
        self.write_lock, self.lock = threading.RLock(), threading.RLock()
        self.pinned: weakref.WeakSet[Pinned] = weakref.WeakSet()
        self.inherited = False  # of a parent process: not to be used
        self._env: Any = lmdb.open(
            str(path), map_size=map_size, max_dbs=len(DATABASES), max_readers=READERS, readonly=not writable,
            create=create, sync=durable, metasync=durable, max_spare_txns=0, readahead=False,
        )  # fmt: skip
        try:
            self._env.reader_check()  # what killed processes left
            self.databases = {name: self._env.open_db(name, create=create) for name in DATABASES}
        except lmdb.NotFoundError:
            self._env.close()
            raise FileNotFoundError(errno.ENOENT, "no overlay here", str(path)) from None
        except BaseException:
            self._env.close()
            raise

    @classmethod
    def open(cls, path: Path, *, create: bool, durable: bool = True, map_size: int | None = None) -> Environment:
        """The environment of a directory, which is made if `create` and it is missing.

        Raises FileNotFoundError if it is missing otherwise, ValueError if it is open with another `durable`."""
        if create:
            path.mkdir(parents=True, exist_ok=True)
        elif not (path / "data.mdb").is_file():
            raise FileNotFoundError(errno.ENOENT, "no overlay here", str(path))
        with _table:
            status = path.stat()
            key = status.st_dev, status.st_ino
            env = _open.get(key)
            if env is None:
                # Read-only use opens for writing, too, where it may: a writer in this process may come later.
                writable = create or all(os.access(each, os.W_OK) for each in (path, path / "data.mdb"))
                env = _open[key] = _patiently(lambda: cls(path, create, writable, durable, map_size or MAP_SIZE))
            elif create and not env.writable:
                raise PermissionError(errno.EACCES, "opened in this process before it was writable", str(path))
            elif create and env.durable != durable:
                raise ValueError(f"{path} is open in this process with durable={env.durable}")
            return env

    def pin(self) -> Pinned:
        """A read transaction on what is committed now."""
        while True:
            try:
                with self.lock:
                    return Pinned(self, self._env.begin())
            except lmdb.MapResizedError:
                self._resize(lambda size: 0)  # as another process has made it
            except lmdb.ReadersFullError:
                if not self._env.reader_check():
                    raise

    def write(self, work: Callable[[Writing], T]) -> T:
        """Calls `work` in a write transaction and commits it; again from the beginning if the map was too small."""
        with self.write_lock:
            while True:
                try:
                    with self._env.begin(write=True) as txn:
                        result = work(Writing(txn, self.databases))
                    return result
                except lmdb.MapFullError:
                    self._resize(lambda size: 2 * size)
                except lmdb.MapResizedError:
                    self._resize(lambda size: 0)

    def flush(self) -> None:
        """Everything committed to the disk."""
        self._env.sync(True)

    def _resize(self, to: Callable[[int], int]) -> None:
        with self.write_lock, self.lock:
            env = self._env
            for pin in list(self.pinned):
                pin._copy()
            env.set_mapsize(to(env.info()["map_size"]))

    def info(self) -> dict[str, int]:
        with self.lock:
            env = self._env
            page, said = env.stat()["psize"], env.info()
            return {"lmdb_size": page * (said["last_pgno"] + 1), "map_size": said["map_size"]}

    def _abandon(self) -> None:
        """In a forked child: lets go of what the parent has open, whose locks and reader slots stay the parent's."""
        self.write_lock, self.lock = threading.RLock(), threading.RLock()
        self.inherited = True
        for pin in list(self.pinned):
            pin._leave()
        self._env.close()


class Writing:
    """A write transaction, by names of databases."""

    def __init__(self, txn: Any, databases: dict[bytes, Any]) -> None:
        self._txn, self._databases = txn, databases

    def get(self, database: bytes, key: bytes) -> bytes | None:
        found: bytes | None = self._txn.get(key, db=self._databases[database])
        return found

    def put(self, database: bytes, key: bytes, value: bytes) -> None:
        self._txn.put(key, value, db=self._databases[database])

    def delete(self, database: bytes, key: bytes) -> None:
        self._txn.delete(key, db=self._databases[database])

    def first(self, database: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        with self._txn.cursor(self._databases[database]) as cursor:
            return list(itertools.islice(cursor, limit))


class Pinned:
    """A read transaction on one moment, safe from several threads. In a forked child: Inherited."""

    def __init__(self, env: Environment, txn: Any) -> None:
        self._env, self._txn = env, txn
        self._memory: dict[bytes, tuple[list[bytes], dict[bytes, bytes]]] | None = None
        env.pinned.add(self)

    def get(self, database: bytes, key: bytes) -> bytes | None:
        with self._env.lock:
            if self._memory is not None:
                return self._memory[database][1].get(key)
            found: bytes | None = self._live().get(key, db=self._env.databases[database])
            return found

    def count(self, database: bytes) -> int:
        with self._env.lock:
            if self._memory is not None:
                return len(self._memory[database][0])
            return int(self._live().stat(self._env.databases[database])["entries"])

    def scan(self, database: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Records in the order of their keys, from the first that is greater than `after`."""
        while records := self._chunk(database, after):
            yield from records
            after = records[-1][0]

    def _chunk(self, database: bytes, after: bytes) -> list[tuple[bytes, bytes]]:
        with self._env.lock:
            if self._memory is not None:
                keys, values = self._memory[database]
                at = bisect.bisect_right(keys, after)
                return [(key, values[key]) for key in keys[at : at + CHUNK]]
            with self._live().cursor(self._env.databases[database]) as cursor:
                if not cursor.set_range(after + b"\0" if len(after) < LONGEST_KEY else after):
                    return []
                if len(after) == LONGEST_KEY and cursor.key() == after and not cursor.next():
                    return []
                return list(itertools.islice(cursor, CHUNK))

    def _live(self) -> Any:
        if self._txn is None:
            raise Inherited("a snapshot is not for a forked child: take another one there")
        return self._txn

    def _copy(self) -> None:
        """Reads everything into memory and ends the transaction. The environment's lock is held."""
        if self._txn is None:
            return
        memory: dict[bytes, tuple[list[bytes], dict[bytes, bytes]]] = {}
        for name in DATABASES:
            with self._txn.cursor(self._env.databases[name]) as cursor:
                items = dict(cursor)
            memory[name] = list(items), items
        self._txn.abort()
        self._txn, self._memory = None, memory

    @property
    def inherited(self) -> bool:
        """Of a parent process, and not to be read any more."""
        return self._txn is None and self._memory is None

    def _leave(self) -> None:
        self._txn = None  # not aborted: the reader slot is the parent's


def _patiently(opening: Callable[[], Environment]) -> Environment:
    """Another thread may be about to close the environment that nobody refers to any more."""
    for attempt in itertools.count():
        try:
            return opening()
        except lmdb.Error as error:
            if "already open" not in str(error) or attempt == 100:
                raise
        time.sleep(0.01)
    raise AssertionError


def _before_fork() -> None:
    _table.acquire()
    for env in _open.values():
        env.write_lock.acquire()
        env.lock.acquire()


def _after_fork_in_parent() -> None:
    for env in _open.values():
        env.lock.release()
        env.write_lock.release()
    _table.release()


def _after_fork_in_child() -> None:
    global _table
    _table = threading.RLock()
    environments = list(_open.values())
    _open.clear()
    for env in environments:
        with contextlib.suppress(lmdb.Error):
            env._abandon()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
