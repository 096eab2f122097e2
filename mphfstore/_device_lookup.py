"""Look-ups of batches on a device: function, fingerprints, stored keys and values of fixed width lie in its memory
(cuda/lookup.h)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrow import Columns
from ._build import _tables
from ._device import Session, sessions, table_buffers
from ._device_keys import Sender, chunks_of, key_arguments
from ._errors import UnavailableError, sound
from ._exact import width_of_keys
from ._format import File, Kind, Section
from ._keys import IntegerKeys, Parts, listed
from ._native import lib
from ._opened import Opened
from ._source import Window
from ._values import flatten_one

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
    the store's integer dtype, or of bytes, one row per key – arrays there, without a way through the host's memory:
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
        adopted = self._session.device.adopt(keys)
        if adopted is not None:
            count, width = self._check(adopted)
            given = adopted, adopted, np.uint32(0), np.uint64(width), np.uint32(0), np.uint64(count)
            corrupt = self._session.device.zeros(4)
            found = self._find(given, count, corrupt)
            self._refuse(corrupt)
            return self._session.device.array(found, np.dtype(np.int64), count)
        if self._header.kind is Kind.MPHF:
            parts = Parts([self._opened.keys.batch(keys)])
        else:
            parts = self._opened.keys.parts(keys)
        return self._indices(parts)

    def contains_many(self, keys: Any) -> Any:
        """`in` for every key."""
        if self._header.kind is Kind.MPHF:
            raise TypeError("a bare function does not know its keys")
        device, indices = self._session.device, self.index_many(keys)
        if isinstance(indices, np.ndarray):
            return indices >= 0
        count = len(indices)
        out = device.empty(count)
        if count:  # the arrays' own `>=` gives integers, from a kernel that is compiled for it
            self._session.over("mark_found", count, indices, np.uint64(count), out)
        return device.array(out, np.dtype(bool), count)

    def get_many(self, keys: Iterable[Any], default: Any = _MISSING) -> Any:
        """The values of a batch of keys, in its order: an array of the store's dtype, else a list. Values that have no
        dtype are read on the host.

        Absent keys have `default`; without one they raise KeyError, which names the first (of an array on the device,
        its place)."""
        device, opened = self._session.device, self._opened
        if opened.file.schema.get("values") is None:
            raise TypeError("this store has no values; use contains_many")
        there = device.adopt(keys) is not None
        if there and opened.values is None:
            raise TypeError("values of this store have no dtype: they are not on the device")
        batch: Any = keys if there else listed(keys)
        indices = self.index_many(batch)
        if default is _MISSING:
            here = indices
            if there:
                here = np.empty(len(indices), np.int64)
                device.download(indices, here)
            absent = here < 0
            if absent.any():
                first = int(np.argmax(absent))
                raise KeyError(first if there else batch.element(first) if isinstance(batch, Columns) else batch[first])
        if opened.values is None:
            return opened.value_list_at(indices, None if default is _MISSING else default)
        dtype, count = opened.values.dtype, len(indices)
        missing = np.zeros(1, dtype) if default is _MISSING else np.array([flatten_one(default, dtype)], dtype)
        out = device.empty(count * dtype.itemsize)
        if count:
            self._session.over(
                "gather_rows", count * dtype.itemsize, self._rows, np.uint64(dtype.itemsize),
                indices if there else device.upload(indices), np.uint64(count), device.upload(missing), out,
            )  # fmt: skip
        if there:
            return device.array(out, dtype, count)
        values = np.empty(count, dtype)
        device.download(out, values)
        return values

    def _check(self, keys: Any) -> tuple[int, int]:
        """Count and width of an array of keys on the device."""
        kind = self._opened.keys
        if isinstance(kind, IntegerKeys):
            if len(keys.shape) != 1 or keys.dtype != kind.dtype:
                raise TypeError(f"keys on the device are an array of {kind.dtype} here, not of {keys.dtype}")
            return int(keys.shape[0]), kind.size
        if len(keys.shape) != 2 or keys.dtype != np.uint8:
            raise TypeError("keys on the device are rows of uint8 here: an array of two dimensions")
        return int(keys.shape[0]), int(keys.shape[1])

    def _indices(self, parts: Parts) -> NDArray[np.int64]:
        device = self._session.device
        indices, first, corrupt = np.empty(parts.count, np.int64), 0, device.zeros(4)
        found: list[tuple[int, Any]] = []  # chunks still on their way
        chunks = (chunk for batch in parts.batches for chunk in chunks_of(batch))
        for chunk in (*chunks, None):
            if chunk is not None:
                with self._sending:  # another thread's keys would come between these and their look-up
                    given = key_arguments(chunk, self._data, self._offsets)
                    found.append((chunk.count, self._find(given, chunk.count, corrupt)))
            if len(found) > (chunk is not None):  # one is looked up while the next is sent
                count, there = found.pop(0)
                device.download(there, indices[first : first + count])
                first += count
        self._refuse(corrupt)
        if parts.missing is not None:
            indices[parts.missing] = lib.ABSENT
        return indices

    def _find(self, given: tuple[Any, ...], count: int, corrupt: Any) -> Any:
        """Indices of the keys of KEY_ARGUMENTS, on the device."""
        filtered = self._header.kind is not Kind.MPHF
        if count and not self._header.keys:
            if not filtered:
                raise ValueError("a function of no keys has no index to give")
            return self._session.device.upload(np.full(count, lib.ABSENT, np.int64))
        out = self._session.device.empty(8 * count)
        if count:
            self._session.over("look_up", count, *self._function, *given, np.uint32(filtered), corrupt, out)
        return out

    def _refuse(self, corrupt: Any) -> None:
        """Raises FormatError if a look-up has found the file to contradict itself."""
        said = np.empty(1, np.uint32)
        self._session.device.download(corrupt, said)
        if said[0]:
            sound(lib.STATUS_CORRUPT)


def section_buffer(session: Session, file: File, section: Section) -> Any:
    """A section on the device; nothing where there is none."""
    part = file.sections.get(section, b"")
    return session.device.upload(np.frombuffer(part.in_memory() if isinstance(part, Window) else part, np.uint8))


def function_buffers(session: Session, file: File) -> list[Any]:
    """FUNCTION_ARGUMENTS of cuda/lookup.h."""
    h, exact = file.header, file.schema.get("keys") == "exact"
    width = width_of_keys(file) if exact else 0
    sections = Section.TREES, Section.DIRECTORY, Section.FINGERPRINTS, Section.KEYS, Section.KEY_OFFSETS
    trees, directory, _, stored, offsets = (len(file.sections.get(section, b"")) for section in sections)
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
        *(section_buffer(session, file, section) for section in sections),
    ]  # fmt: skip
