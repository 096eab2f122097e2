"""An opened file: the native reader over its index, and where its keys and values are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ._build import isa
from ._encoded import decode_text, decoder
from ._errors import sound
from ._exact import attach_keys, dtype_of_keys, raw_keys, spell_out_keys, stored_batch
from ._format import File, Section
from ._keys import KeyBatch, KeyType
from ._lent import Lent
from ._lookup import Reader
from ._native import ffi, lib
from ._packed import Packed, attach_values, span_of
from ._remote import Blob, Fingerprints, Rows, keys_in, values_in
from ._scan_filter import Prefilter
from ._source import Source, Window, loaded
from ._values import values_of

Indices = NDArray[np.int64]

# Sections that a look-up needs to tell whether a key is there.
FINDING = (Section.TREES, Section.DIRECTORY, Section.FINGERPRINTS, Section.KEYS, Section.KEY_OFFSETS)


class Opened(Reader):
    """A file, the native reader over it and the memory that points into. Whoever works with it is not disturbed by a
    `close` or `reload` meanwhile, and the mapping stays as long."""

    file: File
    source: Source
    keys: KeyType
    reader: Any
    values: Any  # of a numpy dtype: an array, or Rows
    apart: Rows | Blob | Packed | None  # the values if memory does not have them as they are
    lent: Lent  # views into the file
    prefilter: Prefilter | None  # of a scan: the file's, or made from its keys
    folded: Any = None  # of a scan: a dictionary of its keys after case folding, once there is one
    _whole: tuple[Any, File] | None = None
    _section: Any  # of the values
    _width_of: int  # of one; negative: they have offsets

    def __new__(cls, file: File, keys: KeyType, source: Source) -> Opened:
        header = file.header
        owner, memory = _native_reader(file)
        attach_keys(owner, file, memory)
        decode = decoder(file.schema.get("values"))
        blocks = attach_values(owner, file, memory, decode_text if decode is str else decode)
        section, width, array = values_of(file)
        values = held(_NOTHING if section is None else section)
        self: Opened = super().__new__(
            cls, address(owner), (owner, values), header.keys, keys, 0 if section is None else address(values),
            len(values) if blocks is None else blocks.size, width, array,
            None if blocks is None else blocks.value, decode,
        )  # fmt: skip
        self.file, self.keys, self.source, self.reader, self.values = file, keys, source, owner, array
        self.apart, self.lent, self._section, self._width_of = blocks, Lent(), section, width
        scan = file.sections.get(Section.SCAN)
        self.prefilter = None if scan is None else Prefilter.of(scan)
        return self

    def index_batch(self, batch: KeyBatch, out: Indices) -> None:
        """The indices of keys of the set."""
        self._checked(lib.mphf_index_batch(self.reader, batch.native(), ffi.from_buffer("int64_t[]", out)))

    def find_batch(self, batch: KeyBatch, out: Indices) -> None:
        """The indices of any keys, ABSENT for those that are absent."""
        self._checked(lib.mphf_find_batch(self.reader, batch.native(), ffi.from_buffer("int64_t[]", out)))

    def value_list_at(self, indices: Indices, absent: object) -> list[Any]:
        """The values at indices; `absent` for those below 0."""
        if self.apart is None:
            return self.value_list(address(ffi.from_buffer("int64_t[]", indices)), len(indices), absent)
        out, present = [absent] * len(indices), np.flatnonzero(indices >= 0)
        for i, value in zip(present.tolist(), self.apart[indices[present]], strict=True):
            out[i] = value
        return out

    def take(self, indices: Indices, out: NDArray[Any]) -> None:
        """The values at indices, if they have a dtype; anything for those below 0."""
        if len(self.values):
            np.take(self.values, indices, out=out, mode="clip")  # unlike "raise", straight to `out`

    def view(self, index: int) -> memoryview:
        """The bytes of a value, where they lie; read or decompressed elsewhere."""
        if self.apart is not None:
            return memoryview(self.apart.raw(index))
        width = self._width_of
        begin, end = (index * width, (index + 1) * width) if width >= 0 else span_of(self.reader, index)
        return self.lent.view(self._section[begin:end])

    def array(self) -> NDArray[Any]:
        """All values, where they lie, if they have a dtype."""
        return np.frombuffer(self.lent.view(self._section), self.values.dtype)

    def key_list(self, begin: int, end: int) -> list[Any]:
        """The stored keys from one index to another, as they were given."""
        if self.keys.size:
            part = self.file.sections[Section.KEYS][begin * self.keys.size : end * self.keys.size]
            integers: list[Any] = np.frombuffer(part, dtype_of_keys(self.file, self.keys)).tolist()
            return integers
        return list(map(self.keys.decode, self._raw_keys(begin, end)))

    def key_array(self) -> NDArray[Any]:
        """All stored keys, where they lie. TypeError where they have no dtype."""
        dtype, section = dtype_of_keys(self.file, self.keys), self.file.sections[Section.KEYS]
        memory = section.in_memory() if isinstance(section, Window) else self.lent.view(section)
        return np.frombuffer(memory, dtype)

    def whole(self) -> tuple[Any, File]:
        """For those with more look-ups to make than there are keys, once: a native reader that finds keys by itself and
        knows where they begin, and a file whose function, fingerprints and keys are in memory."""
        if self._whole is None:
            sections = self.file.sections
            file = replace(self.file, sections={kind: loaded(sections[kind]) for kind in FINDING if kind in sections})
            reader, memory = _native_reader(file)
            attach_keys(reader, file, memory)
            spell_out_keys(reader, file, memory)
            self._whole = reader, file
        return self._whole

    def stored_keys(self) -> KeyBatch:
        """All stored keys as bytes, in the order of their indices."""
        return stored_batch(*self.whole())

    def _raw_keys(self, begin: int, end: int) -> list[bytes]:
        return raw_keys(self.reader, self.file.sections[Section.KEYS], begin, end)

    def _checked(self, status: int) -> None:
        if status != lib.STATUS_OK:
            self._failed(status)

    def _failed(self, status: int) -> NoReturn:
        sound(status)
        raise AssertionError(status)


class Remote(Opened):
    """The same with data sections that stay in the file. The native reader knows the function alone."""

    _fingerprints: Fingerprints | None
    _stored: Any  # the keys as Rows or Blob, or None

    def __new__(cls, file: File, keys: KeyType, source: Source) -> Remote:
        header, sections = file.header, file.sections
        owner, _ = _native_reader(file)
        bits, values = header.fingerprint_bits, values_in(file)
        self: Remote = Reader.__new__(cls, 0, owner, header.keys, keys, 0, 0, -1, values)
        self.file, self.keys, self.source, self.reader = file, keys, source, owner
        self.values = values if isinstance(values, Rows) and values.dtype is not None else None
        self.apart, self.lent, self._stored, self.prefilter = values, Lent(), keys_in(file), None
        self._fingerprints = Fingerprints(sections[Section.FINGERPRINTS], header.keys, bits) if bits else None
        return self

    def find(self, key: object) -> int:
        try:
            raw = self.keys.one(key)
        except OverflowError:
            return int(lib.ABSENT)
        index: int = lib.mphf_find(self.reader, raw, len(raw))
        if index < 0:
            return index if index == lib.ABSENT else self._failed(index)
        if self._fingerprints is not None:
            hash128 = ffi.new("uint64_t[2]")
            lib.mphf_hash(raw, len(raw), self.file.header.seed, hash128, hash128 + 1)
            if not self._fingerprints.match(index, hash128[0]):
                return int(lib.ABSENT)
        return index if self._stored is None or self._stored.raw(index) == raw else int(lib.ABSENT)

    def find_batch(self, batch: KeyBatch, out: Indices) -> None:
        """First without the data sections; fingerprints and keys are read of what that leaves."""
        super().find_batch(batch, out)
        present = np.flatnonzero(out >= 0)
        if self._fingerprints is not None and len(present):
            hi, lo = np.empty(len(batch), np.uint64), np.empty(len(batch), np.uint64)
            parts = (ffi.from_buffer("uint64_t[]", part) for part in (hi, lo))
            lib.mphf_hash_batch(batch.native(), self.file.header.seed, *parts)
            match = self._fingerprints.matching(out[present], hi[present])
            out[present[~match]] = lib.ABSENT
            present = present[match]
        if self._stored is not None and len(present):
            own = zip(present.tolist(), self._stored[out[present]], strict=True)
            out[[i for i, key in own if key != batch[i]]] = lib.ABSENT

    def take(self, indices: Indices, out: NDArray[Any]) -> None:
        present = indices >= 0
        out[present] = self.values[indices[present]]

    def array(self) -> NDArray[Any]:
        whole: NDArray[Any] = self.values.whole()
        return whole

    def _raw_keys(self, begin: int, end: int) -> list[bytes]:
        keys: list[bytes] = self._stored[np.arange(begin, end)]
        return keys


_NOTHING = b""
# Sections that the native reader gets only if the schema says so.
_PARTS = (Section.OFFSETS, Section.KEYS, Section.KEY_OFFSETS, Section.ORDINALS, Section.BLOCKS)


def _native_reader(file: File) -> tuple[Any, dict[Section, Any]]:
    """Of the sections that are in memory; and these. Without fingerprints it takes every key for present whose bucket
    is not empty."""
    header, sections = file.header, file.sections
    memory = {
        kind: held(_NOTHING if isinstance(part, Window) else part)
        for kind in (Section.TREES, Section.DIRECTORY, Section.FINGERPRINTS, *_PARTS)
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


def held(section: Any) -> Any:
    """A section as C has it, which keeps it. Through an array: that hides a view from the garbage collector, which in
    CPython before 3.12.7 breaks cycles of garbage – say of a kept exception – by clearing views that are in use
    (gh-77894), and crashes."""
    return ffi.from_buffer("uint8_t[]", np.frombuffer(section, np.uint8))


def address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _free(reader: Any, memory: object) -> None:
    lib.mphf_reader_free(reader)
