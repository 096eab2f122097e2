"""The file: header, section table and checksums, as FORMAT.md specifies them. Nothing else in the package knows an
offset."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from ._errors import ChecksumError, FormatError, FormatVersionError
from ._native import ffi, lib
from ._source import Window

MAGIC = b"\x89MPH\r\n\x1a\n"
VERSION = 1
ALIGNMENT = 64
BLOCK = 65_536
MAX_SECTIONS = 64
MAX_JSON = 1 << 26

_HEADER = struct.Struct("<8s HHI QQ QQQ II BBBBBB H BBHH 26x 24x")
_ENTRY = struct.Struct("<II QQQ")
_CHECKSUM_AT = 24


class Kind(IntEnum):
    """What a file is."""

    MPHF = 1
    FILTER = 2
    STORE = 3


class Section(IntEnum):
    """Kinds of sections; from 16 on, data checked in blocks."""

    SCHEMA = 1
    TREES = 2
    DIRECTORY = 3
    BLOCK_SUMS = 4
    METADATA = 5
    FINGERPRINTS = 16
    VALUES = 17
    OFFSETS = 18
    BLOB = 19
    KEYS = 20
    KEY_OFFSETS = 21
    ORDINALS = 22
    BLOCKS = 23
    DICTIONARY = 24
    SCAN = 25

    @property
    def is_data(self) -> bool:
        return self >= 16


@dataclass(frozen=True)
class Header:
    """The numbers of a header, but for what follows from the sections."""

    keys: int
    seed: int
    buckets: int
    largest_bucket: int
    bucket_size: int
    method: int
    leaf: int
    fanout1: int
    fanout2: int
    fingerprint_bits: int
    kind: Kind
    fanout3: int = 0
    root_bits: int = 0
    leaf_room: int = 0
    split_room: int = 0

    def parameters(self) -> Any:
        """The native structure."""
        p = ffi.new("mphf_parameters *")
        for name in ("method", "leaf", "fanout1", "fanout2", "fanout3", "root_bits", "leaf_room", "split_room"):
            setattr(p, name, getattr(self, name))
        return p


_FIELDS = [field.name for field in fields(Header)]
_BEFORE_ZERO = _FIELDS.index("kind") + 1  # numbers of the header before its two bytes of zeros


def _damaged(what: str) -> ChecksumError:
    return ChecksumError(f"{what} is damaged: restore the file or build it again")


class Target(Protocol):
    """Where a file is written: `write_at` puts bytes at an offset."""

    def write_at(self, data: memoryview, offset: int) -> None: ...


def checksum(data: Any) -> int:
    return xxhash.xxh3_64_intdigest(data)


def to_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _blocks(length: int) -> int:
    return -(-length // BLOCK)


class Writer:
    """Writes a file whose section lengths are all known beforehand. Sections may be written in any order, each from
    front to back."""

    def __init__(self, target: Target, header: Header, lengths: dict[Section, int]) -> None:
        self._target, self._header = target, header
        sums = sum(_blocks(length) for kind, length in lengths.items() if kind.is_data)
        if any(kind.is_data for kind in lengths):
            lengths = {**lengths, Section.BLOCK_SUMS: 8 * sums}
        self._lengths = dict(sorted(lengths.items()))
        self._offsets: dict[Section, int] = {}
        end = _HEADER.size + _ENTRY.size * len(lengths)
        for kind, length in self._lengths.items():
            self._offsets[kind] = -(-end // ALIGNMENT) * ALIGNMENT
            end = self._offsets[kind] + length
        self.file_length = end
        self._sums: dict[Section, list[int]] = {}

    def write(self, section: Section, chunks: Iterable[Any]) -> None:
        """Writes the whole of a section; its data may come in chunks of any size."""
        at, sums, rest = self._offsets[section], [], bytearray()
        whole = xxhash.xxh3_64()
        for chunk in chunks:
            view = memoryview(chunk).cast("B")
            self._target.write_at(view, at)
            at += len(view)
            if not section.is_data:
                whole.update(view)
                continue
            if rest:
                missing = BLOCK - len(rest)
                rest += view[:missing]
                view = view[missing:]
                if len(rest) == BLOCK:
                    sums.append(checksum(rest))
                    rest = bytearray()
            for begin in range(0, len(view) - BLOCK + 1, BLOCK):
                sums.append(checksum(view[begin : begin + BLOCK]))
            rest += view[len(view) // BLOCK * BLOCK :]
        if rest:
            sums.append(checksum(rest))
        if at != self._offsets[section] + self._lengths[section]:
            raise AssertionError(f"section {section.name} is not as long as announced")
        self._sums[section] = sums if section.is_data else [whole.intdigest()]

    def finish(self) -> None:
        """Writes the block sums and, last of all, the header."""
        runs = {kind: np.array(sums, "<u8").tobytes() for kind, sums in self._sums.items() if kind.is_data}
        if Section.BLOCK_SUMS in self._lengths:
            self.write(Section.BLOCK_SUMS, [runs[kind] for kind in self._lengths if kind.is_data])
        numbers = list(asdict(self._header).values())
        header = bytearray(
            _HEADER.pack(
                MAGIC,
                VERSION,
                len(self._lengths),
                0,
                self.file_length,
                0,
                *numbers[:_BEFORE_ZERO],
                0,
                *numbers[_BEFORE_ZERO:],
            )
        )
        for kind, length in self._lengths.items():
            total = checksum(runs[kind]) if kind.is_data else self._sums[kind][0]
            header += _ENTRY.pack(kind, 0, self._offsets[kind], length, total)
        header[_CHECKSUM_AT : _CHECKSUM_AT + 8] = struct.pack("<Q", checksum(header))
        written = max(self._offsets[kind] + length for kind, length in self._lengths.items() if length)
        if written < self.file_length:  # padding before a last section of no bytes
            self._target.write_at(memoryview(bytes(self.file_length - written)), written)
        self._target.write_at(memoryview(header), 0)


@dataclass(frozen=True)
class File:
    """A file opened: header and index sections verified, data sections located and not yet looked at."""

    header: Header
    schema: dict[str, Any]
    metadata: Any
    sections: dict[Section, Any]  # memoryview, or Window
    data: memoryview | Window  # the whole of it

    def verify(self) -> None:
        """Reads every data section and compares its blocks. Raises ChecksumError for the first that has changed."""
        at = 0
        for kind, view in self.sections.items():
            if not kind.is_data:
                continue
            run = self.sections[Section.BLOCK_SUMS][at : at + 8 * _blocks(len(view))]
            at += len(run)
            for block, expected in enumerate(np.frombuffer(run, "<u8")):
                if checksum(view[block * BLOCK : (block + 1) * BLOCK]) != expected:
                    raise _damaged(f"block {block} of 64 KiB of section {kind.name.lower()}")


def parse(data: memoryview | Window) -> File:
    """Checks header, section table and index sections of a whole file. Raises FormatError, FormatVersionError or
    ChecksumError."""
    header, entries = parse_header(data)
    sections: dict[Section, Any] = {}
    totals: dict[Section, int] = {}
    end = _HEADER.size + _ENTRY.size * len(entries)
    for number, reserved, offset, length, total in entries:
        if number not in Section._value2member_map_ or reserved:
            raise FormatError(f"unknown section {number} in a file of format version {VERSION}")
        kind = Section(number)
        if (
            offset != -(-end // ALIGNMENT) * ALIGNMENT
            or length > len(data) - offset
            or (sections and kind <= max(sections))
        ):
            raise FormatError(f"section {kind.name.lower()} does not lie where it should")
        if any(data[end:offset]):
            raise _damaged(f"the padding before section {kind.name.lower()}")
        stays = isinstance(data, Window) and kind.is_data
        sections[kind] = data.window(offset, length) if stays else data[offset : offset + length]  # type: ignore[union-attr]
        totals[kind] = total
        end = offset + length
        if not kind.is_data and checksum(sections[kind]) != total:
            raise _damaged(f"section {kind.name.lower()}")
    if end != len(data):
        raise FormatError(f"{len(data) - end} bytes after the last section")
    _check_block_sums(sections, totals)
    if Section.SCHEMA not in sections:
        raise FormatError("no section schema")
    schema = _from_json(sections[Section.SCHEMA], "schema")
    if not isinstance(schema, dict):
        raise FormatError("the schema is not a JSON object")
    _check_sections(header, schema, sections)
    metadata = _from_json(sections[Section.METADATA], "metadata") if Section.METADATA in sections else None
    return File(header, schema, metadata, sections, data)


def parse_header(data: memoryview | Window) -> tuple[Header, list[tuple[int, ...]]]:
    if len(data) < 8 or data[:8] != MAGIC:
        raise FormatError("empty file" if not data else "not a file of mphfstore: other first bytes")
    if len(data) < _HEADER.size:
        raise FormatError(f"truncated: {len(data)} bytes, not even a header")
    _, version, count, features, length, expected, *numbers = _HEADER.unpack(data[: _HEADER.size])
    if version > VERSION:
        raise FormatVersionError(
            f"expected format version {VERSION} or less, got {version}: made by a newer mphfstore; upgrade to read it"
        )
    if features:
        raise FormatVersionError(
            f"requires features {features:#x} that this mphfstore does not know; upgrade to read it"
        )
    if length != len(data):
        change = "truncated" if len(data) < length else "appended to"
        raise FormatError(f"expected {length} bytes, got {len(data)}: the file was {change}")
    end = _HEADER.size + _ENTRY.size * count
    if version < 1 or count > MAX_SECTIONS or end > len(data):
        raise FormatError("the header makes no sense")
    covered = bytearray(data[:end])
    covered[_CHECKSUM_AT : _CHECKSUM_AT + 8] = bytes(8)
    if checksum(covered) != expected:
        raise _damaged("the header")
    zero = numbers.pop(_BEFORE_ZERO)
    values = dict(zip(_FIELDS, numbers, strict=True))
    if zero or any(covered[_HEADER.size - 50 : _HEADER.size]) or values["kind"] not in Kind._value2member_map_:
        raise FormatError("the header makes no sense")
    header = Header(**{**values, "kind": Kind(values["kind"])})
    if (
        header.largest_bucket > min(lib.MPHF_LARGEST_BUCKET, header.keys)
        or header.fingerprint_bits > 32
        or header.keys >> 58  # so that no product of keys and a width in bits overflows
        or (header.buckets == 0) != (header.keys == 0)
    ):
        raise FormatError("the header makes no sense")
    return header, list(_ENTRY.iter_unpack(covered[_HEADER.size :]))


def identity(data: Any) -> str:
    """What tells a whole file from any other, of the beginning of its bytes: its length and the checksum of its
    header, which covers those of all sections. Two files that agree in it have the same bytes."""
    return bytes(data[16:32]).hex()


def _check_block_sums(sections: dict[Section, Any], totals: dict[Section, int]) -> None:
    data = [kind for kind in sections if kind.is_data]
    sums = sections.get(Section.BLOCK_SUMS, memoryview(b""))
    if len(sums) != 8 * sum(_blocks(len(sections[kind])) for kind in data) or bool(data) != (
        Section.BLOCK_SUMS in sections
    ):
        raise FormatError("block sums and data sections do not match")
    at = 0
    for kind in data:
        run = sums[at : at + 8 * _blocks(len(sections[kind]))]
        at += len(run)
        if checksum(run) != totals[kind]:
            raise _damaged(f"the run of block sums of section {kind.name.lower()}")


def _check_sections(header: Header, schema: dict[str, Any], sections: dict[Section, Any]) -> None:
    """Which sections there are follows from header and schema (FORMAT.md §1)."""
    expected = {Section.SCHEMA, Section.TREES, Section.DIRECTORY}
    if header.fingerprint_bits:
        expected.add(Section.FINGERPRINTS)
    if schema.get("values") is not None:
        expected |= {Section.OFFSETS, Section.BLOB} if schema.get("value_width") is None else {Section.VALUES}
    if schema.get("distinct_values") is not None:
        expected.add(Section.ORDINALS)
    if schema.get("compression") is not None:
        expected |= {Section.BLOCKS, Section.DICTIONARY}
    if schema.get("keys") == "exact":
        expected |= {Section.KEYS} if schema.get("key_width") is not None else {Section.KEYS, Section.KEY_OFFSETS}
    if (scan := schema.get("scan")) is not None:
        expected.add(Section.SCAN)
    if set(sections) - {Section.BLOCK_SUMS, Section.METADATA} != expected:
        raise FormatError("header, schema and sections do not match")
    if header.kind != Kind.STORE and schema.get("values") is not None:
        raise FormatError(f"a {header.kind.name.lower()} with values")
    stored = ("fingerprint", "exact") if header.kind == Kind.STORE else ("fingerprint",)
    if (header.kind == Kind.MPHF) != (schema.get("keys") is None) or schema.get("keys") not in (None, *stored):
        raise FormatError(f"a {header.kind.name.lower()} with keys stored as {schema.get('keys')!r}")
    if scan is not None and (scan is not True or header.kind == Kind.MPHF):
        raise FormatError(f"a {header.kind.name.lower()} with scan {scan!r}")
    if header.kind == Kind.MPHF and header.fingerprint_bits:
        raise FormatError("a bare function with fingerprints")


def _from_json(data: memoryview, what: str) -> Any:
    if len(data) > MAX_JSON:
        raise FormatError(f"the {what} has {len(data)} bytes")
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError):
        raise FormatError(f"the {what} is not JSON") from None


def directory_words(keys_before: NDArray[np.uint64], starts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The directory section of buckets whose first keys and first bits are given, with the ends as last elements."""
    k, s, buckets = ffi.from_buffer("uint64_t[]", keys_before), ffi.from_buffer("uint64_t[]", starts), len(starts) - 1
    line = ffi.new("directory_line *")
    _check_memory(lib.mphf_directory_line(k, s, buckets, line))
    words = np.empty(lib.mphf_directory_words(k, s, buckets, line), np.uint64)
    _check_memory(lib.mphf_directory_build(k, s, buckets, line, ffi.from_buffer("uint64_t[]", words)))
    return words


def chain_line(tables: Any, sizes: NDArray[np.uint32]) -> Any:
    """The line along which buckets of chained seeds lie: a native chain_line."""
    line = ffi.new("chain_line *")
    _check_memory(lib.mphf_chain_line(tables, ffi.from_buffer("uint32_t[]", sizes), len(sizes), line))
    return line


def chain_directory_words(line: Any, sizes: NDArray[np.uint32], salts: list[tuple[int, int]]) -> NDArray[np.uint64]:
    """The directory section of chained seeds; `salts`: (bucket, salt) where it does not fit its field, in order."""
    words = np.empty(lib.mphf_chain_directory_words(line, len(sizes), len(salts)), np.uint64)
    lib.mphf_chain_directory_build(
        line, ffi.from_buffer("uint32_t[]", sizes), len(sizes), ffi.new("root_salt[]", salts), len(salts),
        ffi.from_buffer("uint64_t[]", words),
    )  # fmt: skip
    return words


def _check_memory(status: int) -> None:
    if status != lib.STATUS_OK:
        raise MemoryError


def elias_fano_words(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A non-decreasing sequence, at least one value, in Elias-Fano form."""
    words = np.empty(lib.elias_fano_words(len(values), int(values[-1])), np.uint64)
    lib.elias_fano_build(ffi.from_buffer("uint64_t[]", values), len(values), ffi.from_buffer("uint64_t[]", words))
    return words
