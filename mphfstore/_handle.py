"""What every opened file has in common: the mapping, the native reader over it, and look-ups of indices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._batch import apart, checked_out, look_up
from ._build import METHODS, Index, isa
from ._columns import Placed
from ._encoded import decoder
from ._errors import FormatError
from ._exact import StoredKeys, attach_keys
from ._format import VERSION, File, Header, Kind, Section, Target, Writer, parse, to_json
from ._keys import KeyType, key_type
from ._lookup import Contains, Reader
from ._lookup import Handle as Attached
from ._native import ffi, lib
from ._packed import Packed, attach_values
from ._publish import Publication
from ._values import values_of

H = TypeVar("H", bound="Handle")


class Opened(Reader):
    """A file, the native reader over it and the memory that points into. Whoever works with it is not disturbed by a
    `close` meanwhile, and the mapping stays as long."""

    file: File
    reader: Any
    values: NDArray[Any] | None  # of a numpy dtype
    blocks: Packed | None  # if they are compressed

    def __new__(cls, file: File, keys: KeyType) -> Opened:
        header, sections = file.header, file.sections
        empty = b""
        memory = {
            kind: _held(sections.get(kind, empty))
            for kind in (Section.TREES, Section.DIRECTORY, Section.FINGERPRINTS, *PARTS)
        }
        status = ffi.new("int *")
        reader = lib.mphf_reader_new(
            isa(), header.parameters(), header.keys, header.seed, header.buckets, header.largest_bucket,
            *(part for kind in list(memory)[:3] for part in (memory[kind], len(memory[kind]))),
            header.fingerprint_bits, status,
        )  # fmt: skip
        if status[0] == lib.STATUS_NO_MEMORY:
            raise MemoryError
        sound(status[0])
        # The destructor keeps the memory: whoever holds the reader, say in a call without the GIL, holds the mapping.
        owner = ffi.gc(reader, partial(_free, memory=memory))
        attach_keys(reader, file, memory)
        blocks = attach_values(owner, file, memory)
        section, width, array = values_of(file)
        values = _held(empty if section is None else section)
        self: Opened = super().__new__(
            cls, address(reader), (owner, values), header.keys, keys, 0 if section is None else address(values),
            len(values) if blocks is None else blocks.size, width, array,
            None if blocks is None else blocks.value, decoder(file.schema.get("values")),
        )  # fmt: skip
        self.file, self.reader, self.values, self.blocks = file, owner, array, blocks
        return self

    def value_list_at(self, indices: NDArray[np.int64], absent: object) -> list[Any]:
        """The values at indices; `absent` for those below 0."""
        if self.blocks is not None:
            return self.blocks.values_at(indices, absent)
        return self.value_list(address(ffi.from_buffer("int64_t[]", indices)), len(indices), absent)

    def _failed(self, status: int) -> NoReturn:
        sound(status)
        raise AssertionError(status)


# Sections that the native reader gets only if the schema says so.
PARTS = (Section.OFFSETS, Section.KEYS, Section.KEY_OFFSETS, Section.ORDINALS, Section.BLOCKS)


def _held(section: Any) -> Any:
    """A section as C has it. Through an array, which hides the view from the garbage collector: in CPython before
    3.12.7 that breaks cycles of garbage – say of a kept exception – by clearing views that are in use (gh-77894), and
    crashes."""
    return ffi.from_buffer("uint8_t[]", np.frombuffer(section, np.uint8))


def address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _free(reader: Any, memory: object) -> None:
    lib.mphf_reader_free(reader)


def sound(status: int) -> None:
    if status != lib.STATUS_OK:
        raise FormatError("the file contradicts itself: it was not written by mphfstore")


class Handle(Attached):
    """Base of `MPHF`, `Filter` and `Store`: immutable, and safe to use from several threads."""

    _kind: Kind

    def __init__(self, data: memoryview | File, path: Path | None = None) -> None:
        file = data if isinstance(data, File) else parse(data)
        self._path = path
        schema, header = file.schema, file.header
        if header.kind != self._kind:
            raise FormatError(
                f"expected a {self._kind.name.lower()}, got a {header.kind.name.lower()}: mphfstore.open opens either"
            )
        try:
            self._keys: KeyType = key_type(schema["key_type"])
        except Exception:
            raise FormatError(f"keys of an unknown type: {schema.get('key_type')!r}") from None
        self._count = header.keys
        self._attach(Opened(file, self._keys))

    def __len__(self) -> int:
        return self._count

    def __enter__(self: H) -> H:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __copy__(self: H) -> H:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        opened = self._opened
        if opened is not None:
            copy._attach(opened)
        return copy

    def __repr__(self) -> str:
        state = "closed " if self._opened is None else ""
        return (
            f"<{state}mphfstore.{type(self).__name__} of {len(self)} keys{f' at {self._path}' if self._path else ''}>"
        )

    def verify(self) -> None:
        """Reads the whole file and compares its checksums. Raises ChecksumError if anything has changed."""
        self._current().file.verify()

    @property
    def bits_per_key(self) -> float:
        """Size of the function – trees and directory – in bits per key; 0.0 without keys."""
        sections = self._current().file.sections
        return 8 * (len(sections[Section.TREES]) + len(sections[Section.DIRECTORY])) / max(1, len(self))

    def info(self) -> dict[str, Any]:
        """What the file says of itself: kind, format version, number of keys, parameters, sizes in bytes, bits per
        key."""
        file = self._current().file
        header, schema = file.header, file.schema
        method = next(name for name, number in METHODS.items() if number == header.method)
        return {
            "path": None if self._path is None else str(self._path),
            "kind": header.kind.name.lower(),
            "format_version": VERSION,
            "keys": header.keys,
            "key_storage": schema.get("keys"),
            **{name: schema.get(name) for name in SHOWN},
            "fingerprint_bits": header.fingerprint_bits,
            "false_positive_rate": _false_positive_rate(file),
            "method": method,
            "leaf_size": header.leaf,
            "bucket_size": header.bucket_size,
            "fanouts": [header.fanout1, header.fanout2] + [header.fanout3] * (method == "chained"),
            "buckets": header.buckets,
            "largest_bucket": header.largest_bucket,
            "seed": header.seed,
            "bits_per_key": self.bits_per_key,
            "file_size": len(file.data),
            "sections": {kind.name.lower(): len(view) for kind, view in file.sections.items()},
            "metadata": file.metadata,
        }

    def to_bytes(self) -> bytes:
        """The whole file as bytes; `from_bytes` takes them."""
        return bytes(self._current().file.data)

    @classmethod
    def from_bytes(cls: type[H], data: Any) -> H:
        """From the bytes of a file: any buffer, which is copied only if it does not start on a multiple of 8."""
        return cls(aligned(data))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Publishes the file under a name: it appears whole or not at all. `mphfstore.open` opens it."""
        data = self._current().file.data
        with Publication(path) as target:
            target.write_at(data, 0)


SHOWN = ("key_type", "key_width", "values", "value_width", "distinct_values", "compression", "block_size", "blob_size")


def _false_positive_rate(file: File) -> float | None:
    if file.header.kind is Kind.MPHF:
        return None
    return 0.0 if file.schema.get("keys") == "exact" else 2.0**-file.header.fingerprint_bits


class Membership(Handle, Contains):
    """A handle with fingerprints or keys: what `Filter` and `Store` share. `in` is never wrong for a key of the set,
    and for any other at `info()["false_positive_rate"]`, which is 0 where the keys are stored."""

    def contains_many(
        self, keys: Iterable[Any], *, out: NDArray[np.bool_] | None = None, threads: int | None = None
    ) -> NDArray[np.bool_]:
        """`in` for every key of a batch: an array of bool, one per key.

        `keys`, `out` and `threads` as `index_many` has them."""
        opened, parts = self._current(), self._keys.parts(keys)
        found = checked_out(out, parts.count, np.bool_)

        def use(first: int, indices: NDArray[np.int64]) -> None:
            np.greater_equal(indices, 0, out=found[first : first + len(indices)])

        look_up(opened, lib.mphf_find_batch, apart(parts, found), threads, use=use)
        return found

    def index_many(
        self, keys: Iterable[Any], *, out: NDArray[np.int64] | None = None, threads: int | None = None
    ) -> NDArray[np.int64]:
        """Index of every key of a batch, -1 where it is absent: an array of int64, one per key.

        keys: a one-dimensional numpy array (`S`, `U`, `StringDType`, integers), any array of the Arrow C data
        interface (pyarrow, polars …; strings, or integers for a store of integers), or any iterable. What cannot be
        a key of the set – a null, an integer that the dtype does not have – is absent. out: an array for the result,
        which is returned: contiguous, writeable, of this dtype and length. threads: by default as many as pay.

        Raises TypeError for keys of another type, TypeError or ValueError for an `out` that does not fit."""
        opened, parts = self._current(), self._keys.parts(keys)
        indices = checked_out(out, parts.count, np.int64)
        look_up(opened, lib.mphf_find_batch, apart(parts, indices), threads, into=indices)
        return indices


def write(
    target: Target,
    index: Index,
    kind: Kind,
    keys: KeyType,
    *,
    fingerprint_bits: int = 0,
    values: Placed | None = None,
    stored: StoredKeys | None = None,
    metadata: Any = None,
) -> None:
    """Writes a whole file."""
    values = values or Placed(None, None, {})
    schema = {
        "key_type": keys.name,
        "keys": None if kind is Kind.MPHF else "fingerprint" if stored is None else "exact",
        "values": values.values,
        "value_width": values.value_width,
        **values.extra,
        **({} if stored is None else {"key_width": stored.width}),
    }
    sections: dict[Section, tuple[int, Iterable[Any]]] = {}
    for section, words in ((Section.TREES, index.trees), (Section.DIRECTORY, index.directory)):
        sections[section] = words.nbytes, [words]
    for section, value in ((Section.SCHEMA, schema), (Section.METADATA, metadata)):
        if value is not None:
            encoded = to_json(value)
            sections[section] = len(encoded), [encoded]
    if fingerprint_bits:
        size = (index.keys * fingerprint_bits + 7) // 8 + 8
        sections[Section.FINGERPRINTS] = size, _fingerprints(index.hi, fingerprint_bits)
    sections |= values.sections
    if stored is not None:
        sections |= stored.sections
    p = index.parameters
    header = Header(
        index.keys, index.seed, index.buckets, index.largest_bucket, index.bucket_size,
        p.method, p.leaf, p.fanout1, p.fanout2, fingerprint_bits, kind,
        p.fanout3, p.root_bits, p.leaf_room, p.split_room,
    )  # fmt: skip
    writer = Writer(target, header, {section: length for section, (length, _) in sections.items()})
    for section, (_, chunks) in sections.items():
        writer.write(section, chunks)
    writer.finish()


def fingerprint_bits_for(bits: int | None, rate: float | None) -> int | None:
    """The bits that are asked for, or the fewest at which no more absent keys pass than at a rate; None for neither.

    Raises ValueError for both, or one out of bounds."""
    if bits is not None and rate is not None:
        raise ValueError("fingerprint_bits and false_positive_rate say the same: give one of them")
    if rate is not None:
        if not 2.0**-32 <= rate <= 1:
            raise ValueError(f"false_positive_rate is 2^-32 (2.3e-10) to 1, not {rate}")
        return next(bits for bits in range(33) if 2.0**-bits <= rate)
    if bits is not None and not 0 <= bits <= 32:
        raise ValueError(f"fingerprint_bits is 0 to 32, not {bits}")
    return bits


def _fingerprints(hi: NDArray[np.uint64], bits: int) -> Iterator[NDArray[np.uint8]]:
    """The section in chunks of 2^20 fingerprints, so whole bytes; then 8 bytes of zeros."""
    step = 1 << 20
    for begin in range(0, len(hi), step):
        words = hi[begin : begin + step]
        size = (len(words) * bits + 7) // 8
        packed = np.zeros(size + 8, np.uint8)
        lib.mphf_pack(ffi.from_buffer("uint64_t[]", words), len(words), bits, ffi.from_buffer("uint8_t[]", packed))
        yield packed[:size]
    yield np.zeros(8, np.uint8)


def aligned(buffer: Any) -> memoryview:
    """A buffer as flat, read-only bytes that start on a multiple of 8: a copy where they do not."""
    view = memoryview(buffer)
    view = (view if view.contiguous else memoryview(bytes(view))).cast("B").toreadonly()
    if len(view) and np.frombuffer(view, np.uint8).ctypes.data % 8:
        copy = np.empty(len(view), np.uint8)
        copy[:] = np.frombuffer(view, np.uint8)
        return memoryview(copy.data).cast("B").toreadonly()
    return view
