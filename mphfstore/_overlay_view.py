"""What an overlay shows at one moment: a generation of the base, and the entries over it."""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import dtype_to_descr

from ._columns import value_dtype
from ._encoded import decode_text, decoder, is_strings
from ._environment import Environment, Pinned
from ._errors import FormatError
from ._format import identity, to_json
from ._keys import KeyType, infer_key_type, key_type
from ._layering import Keyset
from ._open import open as open_file
from ._overlay_state import Record, State, find, keys_since, read_clock, read_state, records
from ._store import Store
from ._values import dtype_from_schema, flatten_one

ABSENT: Any = object()


class Schema:
    """What keys and values are, and how an entry holds a value: as the base's own bytes of it.

    A `key_type` of "str" is that of byte strings that were all given as `str`, as in a store of exact keys."""

    def __init__(self, said: dict[str, Any]) -> None:
        if said["values"] is None:
            raise TypeError("an overlay is for a store with values, which this base has not")
        self.said = {name: said[name] for name in ("key_type", "values")}
        self.said["value_width"] = None if is_strings(said["values"]) else said["value_width"]
        self.keys: KeyType = key_type(said["key_type"])
        self._dtype = dtype_from_schema(self.said["values"], self.said["value_width"])
        self.values: Any = self.said["values"] if self._dtype is None else self._dtype
        made = decoder(self.said["values"])
        self._decode: Callable[[bytes], Any] = bytes if made is None else decode_text if made is str else made

    @classmethod
    def of(cls, values: Any, key_dtype: Any) -> Schema:
        """From what `mphfstore.build` takes."""
        keys = "str" if key_dtype is None else infer_key_type((), key_dtype).name
        if is_strings(values):
            return cls({"key_type": keys, "values": values})
        dtype = value_dtype(values)
        return cls({"key_type": keys, "values": dtype_to_descr(dtype), "value_width": dtype.itemsize})

    @property
    def is_text(self) -> bool:
        return self.keys.name == "str"

    def as_bytes(self) -> Schema:
        return Schema({**self.said, "key_type": "bytes"}) if self.is_text else self

    def fits(self, other: Schema) -> bool:
        return to_json(self.as_bytes().said) == to_json(other.as_bytes().said)

    def encode(self, value: Any) -> bytes:
        """Raises what the store's own conversion raises for a value that does not fit."""
        one = flatten_one(value, self.values)
        raw: bytes = one if self._dtype is None else np.array([one], self._dtype).tobytes()  # S scalars drop NULs
        return raw

    def decode(self, raw: bytes) -> Any:
        return self._decode(raw) if self._dtype is None else np.frombuffer(raw, self._dtype)[0]


@dataclass(frozen=True)
class Base:
    """A generation of the static file; `store` is None, and its identity "", if there is no file."""

    store: Store | None
    identity: str
    status: tuple[int, ...] | None

    @classmethod
    def open(cls, path: Path) -> Base:
        status = status_of(path)  # first: if the file is replaced meanwhile, the next look at it shows that
        try:
            store = open_file(path)
        except FileNotFoundError:
            return cls(None, "", status)
        if not isinstance(store, Store):
            raise FormatError(f"{path}: expected a store, got a {type(store).__name__.lower()}")
        return cls(store, identity(store._current().file.data), status)

    @functools.cached_property
    def schema(self) -> Schema | None:
        return None if self.store is None else Schema(self.store._current().file.schema)


def status_of(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@dataclass(eq=False)
class View:
    """Immutable: a base, a transaction that fits it, and a set that has the key of every entry (and more)."""

    base: Base
    pinned: Pinned
    state: State
    schema: Schema
    clock: int
    keys: Keyset
    _count: int | None = field(default=None, repr=False)

    def find(self, raw: bytes) -> Record | None:
        return find(self.pinned, raw) if raw in self.keys else None

    def value(self, key: Any, raw: bytes) -> Any:
        """ABSENT if the key is."""
        record = self.find(raw)
        if record is not None:
            return ABSENT if record.value is None else self.schema.decode(record.value)
        return ABSENT if self.base.store is None else self.base.store.get(key, ABSENT)

    def has(self, key: Any, raw: bytes) -> bool:
        record = self.find(raw)
        if record is not None:
            return record.value is not None
        return self.base.store is not None and key in self.base.store

    def records(self) -> Iterator[Record]:
        return records(self.pinned)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """First those of the base that are as they were, in its order; then those of the overlay."""
        one, decode = self.schema.keys.one, self.schema.keys.decode
        if self.base.store is not None:
            for key, value in stored_items(self.base.store):
                if self.find(raw := one(key)) is None:
                    yield decode(raw), value
        for record in self.records():
            if record.value is not None:
                yield decode(record.key), self.schema.decode(record.value)

    def __iter__(self) -> Iterator[Any]:
        one, decode = self.schema.keys.one, self.schema.keys.decode
        if self.base.store is not None:
            for key in stored_keys(self.base.store):
                if self.find(raw := one(key)) is None:
                    yield decode(raw)
        for record in self.records():
            if record.value is not None:
                yield decode(record.key)

    def __len__(self) -> int:
        """Counted once, over the entries."""
        if self._count is None:
            store, decode, count = self.base.store, self.schema.as_bytes().keys.decode, 0
            if store is not None:
                stored_keys(store)
                count = len(store)
            for record in self.records():
                count += (record.value is not None) - (store is not None and decode(record.key) in store)
            self._count = count
        return self._count


def view(env: Environment, path: Path, before: View | None = None, base: Base | None = None) -> View:
    """The newest state. Of `before` it takes the base – unless another is given – and the keys, if they still fit.

    A base fits a transaction if the transaction's state names it. The base is opened first: one that was published by
    a compaction is named by every transaction that begins afterwards, until the next one has replaced it."""
    base = base or (Base.open(path) if before is None else before.base)
    while True:
        pinned = env.pin()
        state = read_state(pinned)
        if state is None:
            raise FileNotFoundError(2, "no overlay here", str(env.path))
        if base.identity in state.bases:
            break
        again = Base.open(path)
        if again.identity == base.identity:
            raise Replaced(path, state.base, base.identity)
        base = again
    if before is not None and before.state is state and before.base is base:
        schema = before.schema
    else:
        schema = _common(path, Schema(state.schema), base)
    clock, since = read_clock(pinned), 0
    keys = Keyset(secrets.randbits(64))
    if before is not None and before.state.cleaned == state.cleaned:
        keys, since = before.keys, before.clock
    keys.update(keys_since(pinned, since))
    return View(base, pinned, state, schema, clock, keys)


def _common(path: Path, schema: Schema, base: Base) -> Schema:
    """That of entries and base together. Raises FormatError if they do not fit."""
    its = base.schema
    if its is None:
        return schema
    if not its.fits(schema):
        raise FormatError(f"{path}: expected a base of {schema.said}, got {its.said}")
    return schema if its.is_text or not base.store else schema.as_bytes()


class Replaced(FormatError):
    """The base is not the one the entries were written over."""

    def __init__(self, path: Path, expected: str, got: str) -> None:
        names = [name or "no file" for name in (expected, got)]
        super().__init__(
            f"{path}: expected the base that this overlay was written over ({names[0]}), got another ({names[1]}): "
            "rebase=True keeps the entries over this one"
        )
        self.got = got


def stored_keys(store: Store) -> Iterator[Any]:
    return iter(_stored(store, "keys"))


def stored_items(store: Store) -> Iterator[tuple[Any, Any]]:
    return iter(_stored(store, "items"))


def _stored(store: Any, name: str) -> Any:
    """`keys` or `items` of a store; TypeError if it has not kept its keys."""
    method = getattr(store, name, None)
    if method is None:
        raise TypeError(
            "the base does not hold its keys (keys='fingerprint'): len, iteration and compact need a base that was "
            "built with keys='exact'"
        )
    return method()
