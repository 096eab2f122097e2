"""Look-ups of batches on a device: function, fingerprints, stored keys and values of fixed width lie in its memory
(cuda/lookup.h)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrow import Columns
from ._build import _tables
from ._device import Session, sessions, table_buffers
from ._device_keys import Sender, chunks_of, key_arguments
from ._errors import UnavailableError, sound
from ._exact import width_of_keys
from ._format import File, Header, Kind, Section
from ._keys import IntegerKeys, Parts, listed
from ._native import lib
from ._opened import FINDING, Opened
from ._source import loaded
from ._values import flatten_one

NONE = 0xFFFF_FFFF  # in place of a key's place
_MISSING: Any = object()


def session_for(backend: str) -> Session:
    """For look-ups: "auto" is CUDA, else whatever OpenCL has. Raises UnavailableError."""
    if backend != "auto":
        return sessions(backend)[0]
    try:
        return sessions("cuda")[0]
    except UnavailableError as error:
        try:
            return sessions("opencl")[0]
        except UnavailableError as other:
            raise UnavailableError(f"{error}; {other}") from None


class OnDevice:
    """What `to_device` gives: a store, filter or function in a device's memory. Answers are those of the handle it
    comes from, for keys as that takes them, and then numpy's arrays; or for keys that are an array on the device – of
    the store's integer dtype; or of uint8, one row per key, all of whose bytes count; or a pair, the bytes of all keys
    and where in them each begins and the last ends, uint64 – arrays there, without a way through the host's memory:
    pyopencl.array.Array made with `queue`; with CUDA, of any library that has `__cuda_array_interface__` or DLPack, in
    the memory of the same device and its primary context, and then PyCUDA's GPUArray comes back.

    It keeps the file as it was when it was made: a `reload` of the handle does not change it. Several threads may use
    it."""

    def __init__(self, opened: Opened, session: Session) -> None:
        self._session, self._opened, self._header = session, opened, opened.file.header
        self._function = function_buffers(session, opened.file)
        self._data, self._offsets, self._sending = Sender(session), Sender(session), threading.Lock()
        self._rows = None if opened.values is None else section_buffer(session, opened.file, Section.VALUES)

    def __len__(self) -> int:
        return self._header.keys

    def __repr__(self) -> str:
        return f"<{self._header.kind.name.lower()} of {len(self)} keys on {self._session.device.name}>"

    @property
    def queue(self) -> Any:
        """OpenCL: the command queue that everything runs in, to make arrays with."""
        return self._session.device.queue  # type: ignore[attr-defined]

    def index_many(self, keys: Any) -> Any:
        """Index of every key; -1 where it is absent, but from an MPHF, which does not know its keys."""
        resident = self._resident(keys)
        if resident is not None:
            return self._session.device.array(self._found(*resident), np.dtype(np.int64), resident[1])
        parts = self._parts(keys)
        indices = np.empty(parts.count, np.int64)
        for first, count, found in self._chunks(parts):
            self._session.device.download(found, indices[first : first + count])
        if parts.missing is not None:
            indices[parts.missing] = lib.ABSENT
        return indices

    def contains_many(self, keys: Any) -> Any:
        """`in` for every key."""
        if self._header.kind is Kind.MPHF:
            raise TypeError("a bare function does not know its keys")
        device, resident = self._session.device, self._resident(keys)
        if resident is not None:
            return device.array(self._marked(self._found(*resident), resident[1]), np.dtype(bool), resident[1])
        parts = self._parts(keys)
        present = np.empty(parts.count, bool)
        for first, count, found in self._chunks(parts):
            device.download(self._marked(found, count), present[first : first + count])
        if parts.missing is not None:
            present[parts.missing] = False
        return present

    def get_many(self, keys: Iterable[Any], default: Any = _MISSING) -> Any:
        """The values of a batch of keys, in its order: an array of the store's dtype, else a list. Values that have no
        dtype are read on the host.

        Absent keys have `default`; without one they raise KeyError, which names the first, or of an array on the device
        its place."""
        device, opened = self._session.device, self._opened
        if opened.file.schema.get("values") is None:
            raise TypeError("this store has no values; use contains_many")
        resident = self._resident(keys)
        if opened.values is None:
            if resident is not None:
                raise TypeError("values of this store have no dtype: they are not on the device")
            return self._listed(listed(keys), default)
        dtype = opened.values.dtype
        missing = np.zeros(1, dtype) if default is _MISSING else np.array([flatten_one(default, dtype)], dtype)
        if resident is not None:
            found = self._found(*resident)
            if default is _MISSING and (absent := self._absent(found, resident[1])) is not None:
                raise KeyError(f"the key at place {absent}")
            return device.array(self._gathered(found, resident[1], missing), dtype, resident[1])
        batch = listed(keys)
        parts = self._parts(batch)
        values, absent = np.empty(parts.count, dtype), None
        for first, count, found in self._chunks(parts):
            if default is _MISSING and absent is None and (here := self._absent(found, count)) is not None:
                absent = first + here
            device.download(self._gathered(found, count, missing), values[first : first + count])
        if parts.missing is not None and parts.missing.any():
            values[parts.missing] = missing[0]
            none = int(np.argmax(parts.missing))
            absent = none if absent is None or none < absent else absent
        if default is _MISSING and absent is not None:
            raise KeyError(batch.element(absent) if isinstance(batch, Columns) else batch[absent])
        return values

    def _listed(self, batch: Any, default: Any) -> list[Any]:
        indices = self.index_many(batch)
        if default is _MISSING and (indices < 0).any():
            first = int(np.argmax(indices < 0))
            raise KeyError(batch.element(first) if isinstance(batch, Columns) else batch[first])
        return self._opened.value_list_at(indices, None if default is _MISSING else default)

    def _parts(self, keys: Any) -> Parts:
        kind = self._opened.keys
        return Parts([kind.batch(keys)]) if self._header.kind is Kind.MPHF else kind.parts(keys)

    def _resident(self, keys: Any) -> tuple[tuple[Any, ...], int] | None:
        """KEY_ARGUMENTS of keys on the device, and their number; None for keys that are not there."""
        device, kind = self._session.device, self._opened.keys
        if isinstance(keys, tuple) and len(keys) == 2 and kind.text:
            data, offsets = (device.adopt(array) for array in keys)
            if data is None or offsets is None:
                return None
            if (data.dtype, offsets.dtype) != (np.uint8, np.uint64) or len(data.shape) != 1 or len(offsets.shape) != 1:
                raise TypeError("keys on the device are bytes as uint8 and offsets as uint64, of one dimension each")
            count = int(offsets.shape[0]) - 1
            return (data, offsets, np.uint32(1), np.uint64(0), np.uint32(0), np.uint64(count)), count
        adopted = device.adopt(keys)
        if adopted is None:
            return None
        if isinstance(kind, IntegerKeys):
            if len(adopted.shape) != 1 or adopted.dtype != kind.dtype:
                raise TypeError(f"keys on the device are an array of {kind.dtype} here, not of {adopted.dtype}")
            width = kind.size
        else:
            if len(adopted.shape) != 2 or adopted.dtype != np.uint8:
                raise TypeError("keys on the device are rows of uint8 here: an array of two dimensions")
            width = int(adopted.shape[1])
        count = int(adopted.shape[0])
        return (adopted, adopted, np.uint32(0), np.uint64(width), np.uint32(0), np.uint64(count)), count

    def _found(self, given: tuple[Any, ...], count: int) -> Any:
        """Indices of keys on the device, there."""
        corrupt = self._session.device.zeros(4)
        found = self._find(given, count, corrupt)
        self._refuse(corrupt)
        return found

    def _chunks(self, parts: Parts) -> Iterator[tuple[int, int, Any]]:
        """First key, number of keys and indices, on the device, of chunk after chunk: one is looked up while the next
        is sent."""
        corrupt, before = self._session.device.zeros(4), None
        first = 0
        for chunk in (chunk for batch in parts.batches for chunk in chunks_of(batch)):
            with self._sending:  # another thread's keys would come between these and their look-up
                found = self._find(key_arguments(chunk, self._data, self._offsets), chunk.count, corrupt)
            if before is not None:
                yield before
            before, first = (first, chunk.count, found), first + chunk.count
        if before is not None:
            yield before
        self._refuse(corrupt)

    def _find(self, given: tuple[Any, ...], count: int, corrupt: Any) -> Any:
        """Indices of the keys of KEY_ARGUMENTS, on the device."""
        filtered, device = self._header.kind is not Kind.MPHF, self._session.device
        if count and not self._header.keys:
            if not filtered:
                raise ValueError("a function of no keys has no index to give")
            return device.upload(np.full(count, lib.ABSENT, np.int64))
        out = device.empty(8 * count)
        if count:
            name = kernel_name("look_up", self._header)
            self._session.over(name, count, *self._function, *given, np.uint32(filtered), corrupt, out)
        return out

    def _gathered(self, found: Any, count: int, missing: NDArray[Any]) -> Any:
        """Values at indices, on the device."""
        device, size = self._session.device, missing.dtype.itemsize
        out = device.empty(count * size)
        if count:
            rows, row = self._rows, device.upload(missing)
            self._session.over("gather_rows", count * size, rows, np.uint64(size), found, np.uint64(count), row, out)
        return out

    def _marked(self, found: Any, count: int) -> Any:
        """Which indices are some, on the device."""
        out = self._session.device.empty(count)
        if count:  # the arrays' own `>=` gives integers, from a kernel that is compiled for it
            self._session.over("mark_found", count, found, np.uint64(count), out)
        return out

    def _absent(self, found: Any, count: int) -> int | None:
        """Place of the first index that is none."""
        if not count:
            return None
        first = np.array([NONE], np.uint32)
        there = self._session.device.upload(first)
        self._session.over("first_absent", count, found, np.uint64(count), there)
        self._session.device.download(there, first)
        return None if first[0] == NONE else int(first[0])

    def _refuse(self, corrupt: Any) -> None:
        """Raises FormatError if a look-up has found the file to contradict itself."""
        said = np.empty(1, np.uint32)
        self._session.device.download(corrupt, said)
        if said[0]:
            sound(lib.STATUS_CORRUPT)


def kernel_name(name: str, header: Header) -> str:
    """Of the kernel for a function's method."""
    return f"{name}_chained" if header.method == lib.METHOD_CHAINED else f"{name}_rice"


def section_buffer(session: Session, file: File, section: Section) -> Any:
    """A section on the device; nothing where there is none."""
    return session.device.upload(np.frombuffer(loaded(file.sections.get(section, b"")), np.uint8))


def function_buffers(session: Session, file: File) -> list[Any]:
    """FUNCTION_ARGUMENTS of cuda/lookup.h."""
    h, exact = file.header, file.schema.get("keys") == "exact"
    width = width_of_keys(file) if exact else 0
    trees, directory, _, stored, offsets = (len(file.sections.get(section, b"")) for section in FINDING)
    numbers = np.array(
        [
            h.keys, h.seed, h.buckets, h.method, h.root_bits, h.leaf, h.largest_bucket, h.fingerprint_bits,
            trees, directory, exact, stored, width or 0, width is None, offsets,
        ],
        np.uint64,
    )  # fmt: skip
    tables = _tables(h.parameters(), h.largest_bucket)
    return [
        session.device.upload(numbers), *table_buffers(session.device, tables),
        *(section_buffer(session, file, section) for section in FINDING),
    ]  # fmt: skip
