"""A changeable mapping: an LMDB environment of changes over a static store.

key → _layering   no change of this key?      → the base's own look-up           (native/layered.c)
    → _overlay    this thread's open batch    → the entry in LMDB → the base     (_overlay_view)

put, delete       → one LMDB transaction      (_overlay_state, _environment)
compact           → a new generation of the base                                 (_overlay_compact)"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

from ._environment import Environment, Writing
from ._overlay_compact import compact, locked, rebase, settle
from ._overlay_snapshot import Snapshot, Viewing
from ._overlay_state import State, apply, find, read_state, write_state
from ._overlay_view import ABSENT, Base, Replaced, Schema, View, status_of, view


class Changes(dict[bytes, bytes | None]):
    """Values of keys, None for a deleted one; `text`: every key that was put is a `str`."""

    text = True


class Overlay(Viewing, MutableMapping[Any, Any]):
    """A mutable mapping over a static store: what is put or deleted goes to an LMDB environment beside it, and
    `compact` folds that into a new generation of the store.

    base: path of a store; it need not exist, then the first `compact` makes it. lmdb_dir: directory of the
    environment, made where it is missing. values, key_dtype: as for `build`, where there is no base to say it.
    readonly: needs no base lock and writes no data; the environment must exist. durable: False does not wait for the
    disk. rebase: go on over a base that was replaced by other means than `compact`. map_size: bytes of addresses
    reserved for LMDB at first.

    Promised: a put or delete that has returned, or a batch that has ended, survives the death of the process at any
    point and, with `durable`, of the machine. An overlay shows one committed state: its own writes at once, those of
    others after `refresh()` or its own next write; a look-up never mixes two generations. Writers in any number of
    threads and processes take turns; readers wait for nobody. `compact` loses nothing that is written during it.

    Not promised: a batch does not keep others from writing between what it reads and what it writes. `durable=False`
    can lose or damage the environment when the machine dies, not when the process does. An open overlay holds
    back LMDB's pages as a Snapshot does. Over a base with fingerprints an absent key may pass for a stored one, as in
    the base itself, until it is put or deleted here. len, iteration and `compact` need a base that holds its keys
    (keys="exact"): TypeError without. The base must be replaced by `compact` alone, or while nobody compacts. LMDB
    is not for network file systems.

    Keys and values are checked as the store's own are; TypeError, ValueError, OverflowError as there. KeyError for
    absent keys, FormatError for a base that does not belong to these entries, PermissionError for writes with
    readonly, ValueError once it is closed."""

    def __init__(
        self,
        base: str | os.PathLike[str],
        lmdb_dir: str | os.PathLike[str],
        *,
        values: Any = None,
        key_dtype: Any = None,
        readonly: bool = False,
        durable: bool = True,
        rebase: bool = False,
        map_size: int | None = None,
    ) -> None:
        self._path = Path(os.path.abspath(os.fsdecode(base)))
        self._directory = Path(os.path.abspath(os.fsdecode(lmdb_dir)))
        self._options = {"values": values, "key_dtype": key_dtype, "readonly": readonly, "durable": durable,
                         "rebase": rebase, "map_size": map_size}  # fmt: skip
        self._readonly, self._rebase = readonly, rebase
        self._setup_locks()
        _overlays[id(self)] = self
        self._open()

    def _setup_locks(self) -> None:
        self._lock, self._local = threading.RLock(), threading.local()
        self._batches: list[Changes] = []

    def _open(self) -> None:
        options = self._options
        self._env: Environment | None = Environment.open(
            self._directory, create=not self._readonly, durable=bool(options["durable"]), map_size=options["map_size"]
        )
        given = None
        if options["values"] is not None or options["key_dtype"] is not None:
            given = Schema.of("bytes" if options["values"] is None else options["values"], options["key_dtype"])
        if not self._readonly:
            self._begin(self._env, given)
        try:
            now = view(self._env, self._path)
        except Replaced:
            if self._readonly or not self._rebase:
                raise
            rebase(self._env, self._path)
            now = view(self._env, self._path)
        if given is not None and not given.fits(now.schema):
            raise TypeError(f"this overlay has keys and values of {now.schema.said}, not {given.said}")
        self._show(now)

    def _begin(self, env: Environment, given: Schema | None) -> None:
        """The state of a new environment; the end of a compaction that was killed."""
        base = Base.open(self._path)
        schema = base.schema or given or Schema.of("bytes", None)

        def record(writing: Writing) -> State:
            state = read_state(writing)
            if state is None:
                write_state(writing, state := State(schema.said, base.identity))
            return state

        state = env.write(record)
        if state.pending or state.cleaned != state.folded:
            with locked(env, wait=False) as ours:
                if ours:
                    settle(env, self._path)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (str(self._path), str(self._directory), self._options)

    def __repr__(self) -> str:
        state = "closed " if self._view is None else ""
        return f"<{state}mphfstore.Overlay over {self._path} in {self._directory}>"

    # reading

    def _value(self, key: Any) -> Any:
        batch = self._batch()
        if batch is not None:
            with contextlib.suppress(OverflowError):
                raw = self._schema.keys.one(key)
                if raw in batch:
                    value = batch[raw]
                    return ABSENT if value is None else self._schema.decode(value)
        return super()._value(key)

    def _has(self, key: object) -> bool:
        return self._value(key) is not ABSENT

    def _iterate(self, items: bool = False) -> Iterator[Any]:
        self._no_batch("iteration")
        return super()._iterate(items)

    def __len__(self) -> int:
        self._no_batch("len")
        return super().__len__()

    def refresh(self) -> None:
        """Shows what others have committed, and the newest generation of the base."""
        with self._lock:
            now = self._current()
            published = status_of(self._path) != now.base.status  # though the state may not say so yet
            self._advance(Base.open(self._path) if published else None)

    def _advance(self, base: Base | None = None) -> None:
        """Shows the newest state, over the base as it was if that still fits."""
        with self._lock:
            before = self._view
            if before is None:
                raise ValueError("this overlay is closed")
            if before.pinned.inherited:
                before = None
            after = view(self._environment(), self._path, before, base)
            for batch in self._batches:
                after.keys.update(list(batch))
            self._show(after)

    def _current(self) -> View:
        if self._view is not None and self._view.pinned.inherited:  # by a fork
            self._advance()
        return super()._current()

    def _environment(self) -> Environment:
        if self._env is None:
            raise ValueError("this overlay is closed")
        if self._env.inherited:
            self._env = Environment.open(
                self._directory, create=not self._readonly, durable=bool(self._options["durable"])
            )
        return self._env

    def snapshot(self) -> Snapshot:
        """What this overlay shows now (`refresh` first for the newest), as a mapping that never changes."""
        self._no_batch("a snapshot")
        return Snapshot(self._environment(), self._current())

    def info(self) -> dict[str, Any]:
        """Paths, schema, identity of the base, number of entries, size of the environment in bytes, and whether a
        compaction has not come to its end."""
        now = self._current()
        return {
            "base": str(self._path),
            "lmdb": str(self._directory),
            **now.schema.said,
            "base_identity": now.base.identity or None,
            "base_keys": None if now.base.store is None else len(now.base.store),
            "entries": now.pinned.count(b"log"),
            "compaction_pending": now.state.pending is not None or now.state.cleaned != now.state.folded,
            **self._environment().info(),
        }

    @property
    def _schema(self) -> Schema:
        return self._current().schema

    # writing

    def __setitem__(self, key: Any, value: Any) -> None:
        self._writable()
        schema = self._current().schema
        self._change(key, schema.keys.one(key), schema.encode(value))

    def __delitem__(self, key: Any) -> None:
        self._writable()
        if self._batch() is not None:
            if self._value(key) is ABSENT:
                raise KeyError(key)
            self._change(key, self._schema.keys.one(key), None)
            return
        try:
            raw = self._schema.keys.one(key)
        except OverflowError:
            raise KeyError(key) from None
        env = self._environment()

        def delete(writing: Writing) -> bool | None:
            """Whether it was there; None if only a newer base than ours knows."""
            record, store = find(writing, raw), self._current().base.store
            if record is None:
                state = read_state(writing)
                if state is None or self._current().base.identity not in state.bases:
                    return None
            if record.value is None if record is not None else store is None or key not in store:
                return False
            apply(writing, {raw: None}, text=True)
            return True

        while (deleted := env.write(delete)) is None:
            self.refresh()
        self._advance()
        if not deleted:
            raise KeyError(key)

    def _change(self, key: Any, raw: bytes, value: bytes | None) -> None:
        batch = self._batch()
        changes = Changes() if batch is None else batch
        with self._lock:
            changes[raw] = value
            changes.text = changes.text and (value is None or isinstance(key, str))
            self._current().keys.add(raw)
        if batch is None:
            self._write(changes)

    def _write(self, changes: Changes) -> None:
        if changes:
            self._environment().write(lambda writing: apply(writing, changes, changes.text))
            self._advance()

    def update(self, other: Any = (), /, **more: Any) -> None:
        """Puts every pair of a mapping or iterable, in one transaction: all of them or, after an exception, none."""
        with contextlib.nullcontext() if self._batch() is not None else self.batch():
            super().update(other, **more)

    def delete_many(self, keys: Iterable[Any]) -> None:
        """Deletes keys in one transaction; KeyError, and nothing is deleted, if one is absent."""
        with contextlib.nullcontext() if self._batch() is not None else self.batch():
            for key in keys:
                del self[key]

    def clear(self) -> None:
        """Deletes every key, in one transaction."""
        one = self._schema.keys.one
        self._writable()
        self._write(Changes((one(key), None) for key in self))

    @contextlib.contextmanager
    def batch(self) -> Iterator[Overlay]:
        """A block whose changes, by this thread, are written in one transaction at its end, or not at all if an
        exception leaves it. This thread's look-ups see them at once, others when they are written; len, iteration
        and snapshots have to wait (ValueError). Changes wait in memory, and hold no lock."""
        self._writable()
        self._no_batch("another batch")
        changes = Changes()
        process = os.getpid()
        self._local.batch = changes
        self._batches.append(changes)
        try:
            yield self
            if os.getpid() != process:
                raise RuntimeError("a batch is not for a forked child")
            self._write(changes)
        finally:
            self._local.batch = None
            with contextlib.suppress(ValueError):
                self._batches.remove(changes)

    def compact(self, **options: Any) -> bool:
        """Writes base and overlay into a new file, which takes the base's name, and drops the entries that are in it.
        False if there were none.

        options: those of `mphfstore.build` that say how to build (preset, fingerprint_bits, seed, threads, progress
        …), metadata and scan, by default the base's. Readers go on; so do writers, whose changes meanwhile stay in the
        overlay. A second compaction waits for the first. Killed at any point it leaves the old generation or the
        new one, with all entries; the next writer to open the overlay, or compaction, clears up.

        Raises TypeError if the base does not hold its keys, FormatError if somebody else has replaced it."""
        self._writable()
        self._no_batch("compact")
        done = compact(self._environment(), self._path, **options)
        self.refresh()
        return done

    def flush(self) -> None:
        """Waits until everything is on the disk: for durable=False."""
        self._writable()
        self._environment().flush()

    def close(self) -> None:
        """Lets go of environment and base; snapshots stay. Look-ups afterwards raise ValueError."""
        super().close()
        self._env = None

    def _batch(self) -> Changes | None:
        batch: Changes | None = getattr(self._local, "batch", None)
        return batch

    def _no_batch(self, what: str) -> None:
        if self._batch() is not None:
            raise ValueError(f"{what} has to wait until this thread's batch has ended")

    def _writable(self) -> None:
        self._current()
        if self._readonly:
            raise PermissionError(f"{self._directory}: this overlay was opened with readonly=True")


def _reopened(base: str, directory: str, options: dict[str, Any]) -> Overlay:
    return Overlay(base, directory, **options)


_overlays: weakref.WeakValueDictionary[int, Overlay] = weakref.WeakValueDictionary()


def _after_fork_in_child() -> None:
    for overlay in list(_overlays.values()):
        overlay._setup_locks()  # another thread of the parent may have held them


os.register_at_fork(after_in_child=_after_fork_in_child)
