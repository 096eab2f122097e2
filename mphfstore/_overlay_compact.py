"""Folding an overlay into a new generation of its base, so that a crash anywhere loses nothing.

    lock      one compaction at a time, of all processes; the kernel takes the lock back from a killed one
    settle    what an earlier compaction left: its entries are dropped if its base was published, else forgotten
    write     base and entries of one moment into a new file beside the old one           (_builder, _publish)
    record    `pending`: the new file's identity, and the clock up to which entries are in it; on the disk before
    rename    the new file takes the old one's name
    settle    the state names the new base, then the entries that are in it are dropped, some at a time

Killed before the rename, the old base is in force and every entry is there. Killed after it, the new base is known
from `pending`; entries that it has as well are superfluous, never wrong, until somebody settles. Entries written
meanwhile have a later clock and stay."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ._builder import Builder
from ._environment import Environment, Writing
from ._format import identity
from ._overlay_state import drop_folded, read_state, write_state
from ._overlay_view import Base, Replaced, View, stored_items, view

CHUNK = 1 << 14  # records between two conversions to flat memory


@contextlib.contextmanager
def locked(env: Environment, wait: bool = True) -> Iterator[bool]:
    """The only one to compact. False: another process does, and we are not to wait."""
    fd = os.open(env.path / "compact.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # a child that was forked meanwhile has the descriptor, too
    finally:
        os.close(fd)


def settle(env: Environment, path: Path) -> None:
    """Ends the compaction that came last, whether it ran to its end or was killed. Under the lock."""
    base = Base.open(path).identity
    _sync_directory(path)  # before anything is dropped that the new name alone has

    def record(writing: Writing) -> None:
        state = read_state(writing)
        if state is None or state.pending is None:
            return
        identity, clock = state.pending
        if identity == base:
            state = replace(state, base=base, folded=clock)
        write_state(writing, replace(state, pending=None))

    env.write(record)
    while env.write(drop_folded):
        pass


def rebase(env: Environment, path: Path) -> None:
    """Entries stay, over whatever file has the base's name now."""
    with locked(env):
        settle(env, path)
        base = Base.open(path).identity

        def record(writing: Writing) -> None:
            state = read_state(writing)
            if state is not None and state.base != base:
                write_state(writing, replace(state, base=base))

        env.write(record)


def compact(env: Environment, path: Path, **options: Any) -> bool:
    """Publishes base and overlay as a new base. False: there was nothing to fold."""
    with locked(env):
        settle(env, path)
        now = view(env, path)
        store = now.base.store
        if store is not None:
            stored_items(store)  # TypeError before any work
            if not now.pinned.count(b"log"):
                return False
            said = store.info()
            options = {"metadata": said["metadata"], "scan": said["scan"]} | options

        def record(fd: int) -> None:
            if (found := Base.open(path).identity) != now.base.identity:
                raise Replaced(path, now.base.identity, found)
            pending = identity(os.pread(fd, 32, 0)), now.clock

            def mark(writing: Writing) -> None:
                state = read_state(writing)
                assert state is not None
                write_state(writing, replace(state, pending=pending))

            env.write(mark)
            env.flush()

        builder = Builder(
            path, values=now.schema.values, keys="exact",
            key_dtype=None if now.schema.keys.text else now.schema.keys.name, **options,
        )  # fmt: skip
        builder._publication.ready = record
        with builder:
            _add(builder, now)
        settle(env, path)
        return True


def _add(builder: Builder, now: View) -> None:
    items = now.items()
    while chunk := list(itertools.islice(items, CHUNK)):
        builder.add_many([key for key, _ in chunk], [value for _, value in chunk])


def _sync_directory(path: Path) -> None:
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
