"""What an overlay's LMDB environment holds, and how a transaction changes it.

    entries   key → record: the value that was put, or that the key was deleted
    log       stamp → key: the same records in the order in which they were written
    state     `clock`, the number of the last write transaction; `state`, a JSON object (`State`)

A key of up to 510 bytes is itself, after a NUL; a longer one is the BLAKE2b of it after a byte 1, and its record holds
it whole, next to those of other keys that have the same. A stamp is the clock and a number within the transaction,
so whatever is at most so old, and is folded into a new base, is the beginning of the log."""

from __future__ import annotations

import functools
import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from ._environment import LONGEST_KEY, Pinned, Writing
from ._errors import FormatError, FormatVersionError
from ._format import to_json

VERSION = 1
DROPPED_AT_ONCE = 10_000  # records that one transaction drops, so that other writers do not wait long

_CLOCK, _STAMP = struct.Struct(">Q"), struct.Struct(">QI")
_LONG = struct.Struct(">QQ")  # lengths of a long key and its value
_HEAD = _STAMP.size + 1
_PUT, _DELETED = b"+", b"-"


class Record(NamedTuple):
    """A key that was put or, if `value` is None, deleted."""

    stamp: bytes
    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class State:
    """Which base the entries lie over, and how far a compaction has come.

    base: its identity, "" if there is no file. folded: entries of this clock and before are in it. cleaned: and are
    no longer here. pending: identity and clock of a base that is about to be published, or has just been."""

    schema: dict[str, Any]
    base: str
    folded: int = 0
    cleaned: int = 0
    pending: tuple[str, int] | None = None

    @property
    def bases(self) -> set[str]:
        """The identities of a base over which these entries give the right answers."""
        return {self.base} | ({self.pending[0]} if self.pending else set())


def read_clock(source: Pinned | Writing) -> int:
    raw = source.get(b"state", b"clock")
    return _CLOCK.unpack(raw)[0] if raw else 0


def read_state(source: Pinned | Writing) -> State | None:
    """None: nobody has written anything yet."""
    raw = source.get(b"state", b"state")
    return None if raw is None else _parsed(raw)


@functools.lru_cache(maxsize=64)
def _parsed(raw: bytes) -> State:
    try:
        said = json.loads(raw)
        version = said.pop("version")
        if version > VERSION:
            raise FormatVersionError(f"expected an overlay of version {VERSION} or less, got {version}: upgrade")
        pending = said.pop("pending")
        return State(**said, pending=(pending[0], pending[1]) if pending else None)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError("the overlay's state makes no sense: its LMDB environment is not of mphfstore") from None


def write_state(writing: Writing, state: State) -> None:
    writing.put(b"state", b"state", to_json({"version": VERSION, **asdict(state)}))


def apply(writing: Writing, changes: Mapping[bytes, bytes | None], text: bool) -> None:
    """Writes the values of keys, None for a key that is deleted. text: every key was given as `str`."""
    state = read_state(writing)
    if not text and state is not None and state.schema["key_type"] == "str":
        write_state(writing, replace(state, schema={**state.schema, "key_type": "bytes"}))
    clock = read_clock(writing) + 1
    writing.put(b"state", b"clock", _CLOCK.pack(clock))
    for number, (key, value) in enumerate(changes.items()):
        name, stamp = _name(key), _STAMP.pack(clock, number)
        records = []
        for record in _records(name, writing.get(b"entries", name)):
            if record.key == key:
                writing.delete(b"log", record.stamp)
            else:
                records.append(record)
        writing.put(b"entries", name, _packed(name, [*records, Record(stamp, key, value)]))
        writing.put(b"log", stamp, name)


def drop_folded(writing: Writing) -> bool:
    """Removes some of the records that are in the base. False: there are no more."""
    state = read_state(writing)
    if state is None or state.cleaned == state.folded:
        return False
    for count, (stamp, name) in enumerate(writing.first(b"log", DROPPED_AT_ONCE + 1)):
        if _CLOCK.unpack_from(stamp)[0] > state.folded:
            break
        if count == DROPPED_AT_ONCE:
            return True
        records = [record for record in _records(name, writing.get(b"entries", name)) if record.stamp != stamp]
        if records:
            writing.put(b"entries", name, _packed(name, records))
        else:
            writing.delete(b"entries", name)
        writing.delete(b"log", stamp)
    write_state(writing, replace(state, cleaned=state.folded))
    return False


def find(source: Pinned | Writing, key: bytes) -> Record | None:
    name = _name(key)
    return next((record for record in _records(name, source.get(b"entries", name)) if record.key == key), None)


def records(pinned: Pinned) -> Iterator[Record]:
    """All of them, in an order of no meaning."""
    for name, raw in pinned.scan(b"entries"):
        yield from _records(name, raw)


def keys_since(pinned: Pinned, clock: int) -> Iterator[bytes]:
    """The keys of records written after a clock."""
    for stamp, name in pinned.scan(b"log", _STAMP.pack(clock, (1 << 32) - 1)):
        if name.startswith(b"\0"):
            yield name[1:]
        else:
            yield from (each.key for each in _records(name, pinned.get(b"entries", name)) if each.stamp == stamp)


def _name(key: bytes) -> bytes:
    return b"\0" + key if len(key) < LONGEST_KEY else b"\1" + _digest(key)


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=32).digest()


def _records(name: bytes, raw: bytes | None) -> list[Record]:
    if raw is None:
        return []
    if name.startswith(b"\0"):
        return [Record(raw[: _STAMP.size], name[1:], raw[_HEAD:] if raw[_STAMP.size : _HEAD] == _PUT else None)]
    found, at = [], 0
    while at < len(raw):
        stamp, is_put = raw[at : at + _STAMP.size], raw[at + _STAMP.size : at + _HEAD] == _PUT
        size, length = _LONG.unpack_from(raw, at + _HEAD)
        at += _HEAD + _LONG.size
        found.append(Record(stamp, raw[at : at + size], raw[at + size : at + size + length] if is_put else None))
        at += size + length
    return found


def _packed(name: bytes, records: list[Record]) -> bytes:
    parts = []
    for stamp, key, value in records:
        parts += [stamp, _DELETED if value is None else _PUT]
        if not name.startswith(b"\0"):
            parts += [_LONG.pack(len(key), len(value or b"")), key]
        parts.append(value or b"")
    return b"".join(parts)
