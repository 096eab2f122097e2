"""Keys on their way to a device: chunk by chunk through page-locked memory, so that copying here and transfer go on at
the same time; counted by bucket, and grouped (cuda/grouping.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._device import Event, Session
from ._errors import BuildError
from ._keys import KeyBatch

CHUNK_BYTES = 1 << 25  # of keys; as much again of offsets, at most
RING = 2  # chunks in flight


def chunks_of(keys: KeyBatch) -> Iterator[KeyBatch]:
    """Batches of up to CHUNK_BYTES, or one key."""
    begin = 0
    while begin < keys.count:
        if keys.offsets is None:
            end = begin + max(1, CHUNK_BYTES // max(1, keys.width))
        else:
            end = int(np.searchsorted(keys.offsets, keys.offsets[begin] + np.uint64(CHUNK_BYTES), "right")) - 1
            end = min(max(end, begin + 1), begin + CHUNK_BYTES // 8)
        end = min(end, keys.count)
        yield keys.slice(begin, end)
        begin = end


@dataclass(frozen=True)
class Group:
    """Some buckets of a function, one after the other, on a device."""

    session: Session
    all: int  # buckets of the function
    first: int  # the group's first
    before: int  # keys of the buckets before that
    sizes: NDArray[np.uint32]  # keys of the group's
    offsets: NDArray[np.uint32]  # the first record of each, and their number
    there: Any  # the same on the device
    lo: Any  # hashes and numbers of the records, in the order of their buckets; uint64
    hi: Any
    ids: Any

    def __len__(self) -> int:
        """Keys."""
        return int(self.offsets[-1])


@dataclass
class _Slot:
    """Page-locked memory, the last transfer from it, and the buffer that went to."""

    memory: NDArray[np.uint8]
    sent: Event | None = None
    buffer: Any = None


class Sender:
    """Sends arrays to buffers of a device. A buffer has other bytes RING sends later, unless it is to be kept."""

    def __init__(self, session: Session) -> None:
        self._device = session.device
        self._slots: list[_Slot] = []
        self._turn = 0

    def send(self, array: NDArray[Any], keep: bool = False) -> Any:
        """A buffer that has the array's bytes for every kernel that is launched from now on."""
        flat, device = array.reshape(-1).view(np.uint8), self._device
        if not flat.nbytes:
            return device.zeros(0)
        if len(self._slots) < RING:
            self._slots.append(_Slot(device.pinned(flat.nbytes)))
        slot = self._slots[self._turn]
        self._turn = (self._turn + 1) % RING
        if slot.sent is not None:
            slot.sent.wait()
        if len(slot.memory) < flat.nbytes:
            slot.memory = device.pinned(flat.nbytes)
        slot.memory[: flat.nbytes] = flat
        buffer = slot.buffer
        if keep or buffer is None or buffer.nbytes < flat.nbytes:
            buffer = device.empty(flat.nbytes)
        slot.buffer = None if keep else buffer
        slot.sent = device.send(buffer, slot.memory[: flat.nbytes])
        return buffer


class Feed:
    """All keys of a function, on the device as often as they are asked for. keep: they stay there."""

    def __init__(self, session: Session, keys: KeyBatch, seed: int, hashed: bool, keep: bool = False) -> None:
        self._session, self._keys, self._hashed, self._keep = session, keys, hashed, keep
        self._seed = np.uint64(seed)
        self._kept: list[tuple[Any, ...]] = []
        self._data, self._offsets = Sender(session), Sender(session)

    def _chunks(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """How many keys, and a kernel's arguments for them: KEY_ARGUMENTS, hashed and seed."""
        if self._kept:
            yield from self._kept
            return
        for chunk in chunks_of(self._keys):
            given = key_arguments(chunk, self._data, self._offsets, self._keep)
            sent = chunk.count, (*given, np.uint32(self._hashed), self._seed)
            if self._keep:
                self._kept.append(sent)
            yield sent

    def count(self, buckets: int) -> NDArray[np.uint32]:
        """Keys of every bucket."""
        session, device = self._session, self._session.device
        sizes, there = np.empty(buckets, np.uint32), device.zeros(4 * buckets)
        for count, given in self._chunks():
            session.over("count_keys", count, *given, np.uint64(buckets), there)
        device.download(there, sizes)
        return sizes

    def group(self, all: int, first: int, before: int, sizes: NDArray[np.uint32]) -> Group:
        """The buckets of `sizes` from `first` on; `before`: keys of those before them."""
        session, device = self._session, self._session.device
        offsets = np.zeros(len(sizes) + 1, np.uint32)
        np.cumsum(sizes, out=offsets[1:], dtype=np.uint32)
        there, cursors = device.upload(offsets), device.zeros(4 * len(sizes))
        lo, hi, ids = (device.empty(8 * int(offsets[-1])) for _ in range(3))
        done = 0
        for count, given in self._chunks():
            session.over(
                "group_keys", count, *given, np.uint64(all), np.uint64(first), np.uint64(len(sizes)), np.uint64(done),
                there, cursors, lo, hi, ids,
            )  # fmt: skip
            done += count
        return Group(session, all, first, before, sizes, offsets, there, lo, hi, ids)


class Placing:
    """Records of a group in the order of their indices, as a kernel puts them: `arguments` are its last ones. At the
    end of the block they are in `hi` and `ids`, unless those are None. Raises BuildError if an index was not taken."""

    def __init__(self, group: Group, hi: NDArray[np.uint64] | None, ids: NDArray[np.uint64] | None) -> None:
        device, wanted = group.session.device, hi is not None
        self._group, self._here = group, (hi, ids)
        self._taken = device.zeros(4 * -(-len(group) // 32))
        self._there = [device.empty(8 * len(group) * wanted) for _ in range(2)]
        self.arguments = self._taken, np.uint32(wanted), *self._there

    def __enter__(self) -> Placing:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is not None:
            return
        device, count = self._group.session.device, len(self._group)
        taken = np.empty(-(-count // 32), np.uint32)
        device.download(self._taken, taken)
        last = (1 << (count - 1) % 32 + 1) - 1
        if (taken[:-1] != 0xFFFF_FFFF).any() or taken[-1] != last:
            raise BuildError(f"{device.name} built no bijection: use backend='native'; please report it")
        for there, here in zip(self._there, self._here, strict=True):
            if here is not None:
                device.download(there, here)


def key_arguments(keys: KeyBatch, data: Sender, offsets: Sender, keep: bool = False) -> tuple[Any, ...]:
    """KEY_ARGUMENTS of a batch, which is sent."""
    shape = np.uint64(keys.width), np.uint32(keys.strip), np.uint64(keys.count)
    if keys.offsets is None:
        sent = data.send(keys.data, keep)
        return sent, sent, np.uint32(0), *shape
    begin, end = int(keys.offsets[0]), int(keys.offsets[-1])  # a slice has the whole of its batch's bytes
    there = offsets.send(keys.offsets - keys.offsets[0], keep)
    return data.send(keys.data[begin:end], keep), there, np.uint32(1), *shape
