"""An opened file: the native reader over its index, and where its values are."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ._build import isa
from ._format import File, Section
from ._keys import KeyBatch, KeyType
from ._lent import Lent
from ._lookup import Reader
from ._native import ffi, lib
from ._remote import Blob, Fingerprints, Offsets, Rows, contradiction
from ._source import Source, Window
from ._values import dtype_from_schema, values_of


class Opened(Reader):
    """A file, the native reader over it and the memory that points into. Whoever works with it is not disturbed by a
    `close` or `reload` meanwhile, and the mapping stays as long."""

    file: File
    source: Source
    keys: KeyType
    reader: Any
    values: Any  # of a numpy dtype: an array, or Rows
    lent: Lent  # views into the file
    _section: Any  # of the values
    _width_of: int  # of one; negative: they have offsets

    def __new__(cls, file: File, keys: KeyType, source: Source) -> Opened:
        header, sections = file.header, file.sections
        owner, memory = _native_reader(file)
        if Section.OFFSETS in sections:
            offsets = memory[Section.OFFSETS]
            sound(lib.mphf_reader_offsets(owner, offsets, len(offsets), len(sections[Section.BLOB])))
        section, width, array = values_of(file)
        values = ffi.from_buffer("uint8_t[]", _NOTHING if section is None else section)
        self: Opened = super().__new__(
            cls, address(owner), (owner, values), header.keys, keys,
            0 if section is None else address(values), len(values), width, array,
        )  # fmt: skip
        self.file, self.keys, self.source, self.reader, self.values = file, keys, source, owner, array
        self.lent, self._section, self._width_of = Lent(), section, width
        return self

    def value_list_at(self, indices: NDArray[np.int64], absent: object) -> list[Any]:
        return self.value_list(address(ffi.from_buffer("int64_t[]", indices)), len(indices), absent)

    def checked(self, batch: KeyBatch, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """What `mphf_find_batch` found for a batch, once fingerprints are compared that it could not see."""
        return indices

    def view(self, index: int) -> memoryview:
        """The bytes of a value, where they lie."""
        width = self._width_of
        begin, end = index * width, (index + 1) * width
        if width < 0:
            span = lib.mphf_span(self.reader, index)
            begin, end = span.begin, span.end
            if begin < 0:
                sound(begin)
        return self.lent.view(self._section[begin:end])

    def array(self) -> NDArray[Any]:
        """All values, where they lie, if they have a dtype."""
        return np.frombuffer(self.lent.view(self._section), self.values.dtype)

    def _failed(self, status: int) -> NoReturn:
        sound(status)
        raise AssertionError(status)


class Remote(Opened):
    """The same with data sections that stay in the file. The native reader knows the function alone."""

    _fingerprints: Fingerprints | None
    _all: Any  # Rows, Blob or None

    def __new__(cls, file: File, keys: KeyType, source: Source) -> Remote:
        header, sections = file.header, file.sections
        owner, _ = _native_reader(file)
        bits, values = header.fingerprint_bits, _remote_values(file)
        self: Remote = Reader.__new__(cls, 0, owner, header.keys, keys, 0, 0, -1, values)
        self.file, self.keys, self.source, self.reader = file, keys, source, owner
        self.values = None if values is None or values.dtype is None else values
        self.lent, self._all = Lent(), values
        self._fingerprints = Fingerprints(sections[Section.FINGERPRINTS], header.keys, bits) if bits else None
        return self

    def find(self, key: object) -> int:
        try:
            raw = self.keys.one(key)
        except OverflowError:
            return int(lib.ABSENT)
        index: int = lib.mphf_find(self.reader, raw, len(raw))
        if index < 0 or self._fingerprints is None:
            return index if index >= lib.ABSENT else self._failed(index)
        hash128 = ffi.new("uint64_t[2]")
        lib.mphf_hash(raw, len(raw), self.file.header.seed, hash128, hash128 + 1)
        return index if self._fingerprints.match(index, hash128[0]) else int(lib.ABSENT)

    def value_list_at(self, indices: NDArray[np.int64], absent: object) -> list[Any]:
        out, present = [absent] * len(indices), np.flatnonzero(indices >= 0)
        for i, value in zip(present.tolist(), self._all[indices[present]], strict=True):
            out[i] = value
        return out

    def checked(self, batch: KeyBatch, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        present = np.flatnonzero(indices >= 0)
        if self._fingerprints is None or not len(present):
            return indices
        hi, lo = np.empty(len(batch), np.uint64), np.empty(len(batch), np.uint64)
        parts = (ffi.from_buffer("uint64_t[]", part) for part in (hi, lo))
        lib.mphf_hash_batch(batch.native(), self.file.header.seed, *parts)
        indices[present[~self._fingerprints.matching(indices[present], hi[present])]] = lib.ABSENT
        return indices

    def view(self, index: int) -> memoryview:
        return memoryview(self._all.raw(index))

    def array(self) -> NDArray[Any]:
        whole: NDArray[Any] = self._all.whole()
        return whole


_NOTHING = memoryview(b"")


def _native_reader(file: File) -> tuple[Any, dict[Section, Any]]:
    """Of the sections that are in memory; and these. Without fingerprints it takes every key for present whose bucket
    is not empty."""
    header, sections = file.header, file.sections
    memory = {
        kind: ffi.from_buffer("uint8_t[]", _NOTHING if isinstance(part, Window) else part)
        for kind in (Section.TREES, Section.DIRECTORY, Section.FINGERPRINTS, Section.OFFSETS)
        for part in (sections.get(kind, _NOTHING),)
    }
    status = ffi.new("int *")
    reader = lib.mphf_reader_new(
        isa(), header.parameters(), header.keys, header.seed, header.buckets, header.largest_bucket,
        *(part for kind in list(memory)[:3] for part in (memory[kind], len(memory[kind]))),
        0 if isinstance(sections.get(Section.FINGERPRINTS), Window) else header.fingerprint_bits, status,
    )  # fmt: skip
    if status[0] == lib.STATUS_NO_MEMORY:
        raise MemoryError
    sound(status[0])
    # The destructor keeps the memory: whoever holds the reader, say in a call without the GIL, holds the mapping.
    return ffi.gc(reader, partial(_free, memory=memory)), memory


def _remote_values(file: File) -> Rows | Blob | None:
    sections, keys = file.sections, file.header.keys
    width: Any = file.schema.get("value_width")
    dtype = dtype_from_schema(file.schema.get("values"), width)
    if Section.VALUES in sections:
        if len(sections[Section.VALUES]) != keys * width:
            raise contradiction()
        return Rows(sections[Section.VALUES], width, dtype)
    if Section.BLOB not in sections:
        return None
    blob = sections[Section.BLOB]
    return Blob(blob, Offsets(sections[Section.OFFSETS], keys, len(blob)))


def address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _free(reader: Any, memory: object) -> None:
    lib.mphf_reader_free(reader)


def sound(status: int) -> None:
    if status != lib.STATUS_OK:
        raise contradiction()
