"""Files read and checked (§1, §2, §7)."""

from __future__ import annotations

from functools import cached_property

from xxhash import xxh3_64_intdigest

from .bits import MAX_BUCKET, ceil_div, require, unpack
from .chained import Params as ChainedParams
from .function import Function, FunctionReader, Params
from .rice import Params as RiceParams
from .sections import (
    BLOB,
    BLOCK,
    BLOCK_SUMS,
    DIRECTORY,
    ENTRY,
    FINGERPRINTS,
    HEADER,
    KINDS,
    MAGIC,
    METADATA,
    METHODS,
    OFFSETS,
    SCHEMA,
    TREES,
    VALUES,
    block_sums,
    check_schema,
    parse_json,
    section_kinds,
)
from .sequences import EliasFano
from .writer import hash_key


class Reader:
    """A file in memory. The constructor checks all but the data sections' bytes, `verify` these too (§1)."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = data = bytes(data)
        require(data[:8] == MAGIC, "wrong magic: not an mphfstore file, or damaged by a text-mode transfer")
        require(len(data) >= HEADER.size, "file cut off in its header")
        (_, version, entries, features, length, checksum, self.n, self.seed, self.buckets,
         self.largest_bucket, self.bucket_size, method, leaf, fanout1, fanout2,
         self.fingerprint_bits, self.kind, zero, *chain, zeros) = HEADER.unpack_from(data)  # fmt: skip
        require(version == 1, f"expected format version 1, got {version}")
        require(features == 0, f"unknown required features {features:#x}")
        require(entries <= 64, f"{entries} sections, at most 64 allowed")
        require(length == len(data), f"expected {length} bytes, got {len(data)}")
        end = HEADER.size + ENTRY.size * entries
        require(end <= length, "file cut off in its section table")
        require(xxh3_64_intdigest(data[:24] + bytes(8) + data[32:end]) == checksum, "wrong header checksum")
        require(method in METHODS.values(), f"unknown method {method}")
        self.method = {code: name for name, code in METHODS.items()}[method]
        chained = self.method == "chained"
        require(not zero and not any(zeros) and (chained or not any(chain)), "a field that has to be zero is not")
        fanout3, root_bits, leaf_room, split_room = chain
        self.params: Params = (
            ChainedParams(leaf, (fanout1, fanout2, fanout3), leaf_room, split_room, root_bits)
            if chained
            else RiceParams(self.method, leaf, fanout1, fanout2)
        )
        require(self.kind in KINDS, f"unknown kind {self.kind}")
        require(self.fingerprint_bits <= 32, f"{self.fingerprint_bits} fingerprint bits, at most 32 allowed")
        require((self.buckets == 0) == (self.n == 0), "B is not 0 exactly if n is")
        require(self.largest_bucket <= MAX_BUCKET, f"largest bucket of {self.largest_bucket} keys")
        require(1 <= self.bucket_size <= 65535, "bucket size is not in 1 … 65535")
        self._read_sections(list(ENTRY.iter_unpack(data[HEADER.size : end])), end)
        self._check_data_sections()

        function = Function(self.sections[TREES], self.sections[DIRECTORY])
        self.function = FunctionReader(self.params, function, self.n, self.buckets, self.largest_bucket)

    def _read_sections(self, table: list[tuple[int, ...]], end: int) -> None:
        """Check table, gaps and index sections; `sections` has the bytes by kind."""
        self.sections: dict[int, bytes] = {}
        self.checksums: dict[int, int] = {}
        for kind, zero, offset, length, checksum in table:
            require(zero == 0, f"section {kind}: a field that has to be zero is not")
            previous = max(self.sections, default=0)
            require(previous < kind, f"section {kind} after section {previous}: not in ascending order")
            require(offset == end + -end % 64, f"section {kind} is not at the next multiple of 64")
            require(not any(self.data[end:offset]), f"bytes before section {kind} are not zero")
            end = offset + length
            require(end <= len(self.data), f"section {kind} exceeds the file")
            section = self.sections[kind] = self.data[offset:end]
            self.checksums[kind] = checksum
            sound = kind >= FINGERPRINTS or xxh3_64_intdigest(section) == checksum
            require(sound, f"section {kind}: wrong checksum")
        require(end == len(self.data), "bytes after the last section")
        require(SCHEMA in self.sections, "no schema")
        self.schema = parse_json(self.sections[SCHEMA])
        check_schema(self.schema)
        has_metadata = METADATA in self.sections
        self.metadata = parse_json(self.sections[METADATA]) if has_metadata else None
        kinds = section_kinds(self.schema, self.fingerprint_bits, has_metadata)
        require(list(self.sections) == kinds, f"expected sections {kinds}, got {list(self.sections)}")

    def _check_data_sections(self) -> None:
        """Check lengths and runs of block sums; `runs` has these by kind."""
        lengths = {
            FINGERPRINTS: ceil_div(self.n * self.fingerprint_bits, 8) + 8,
            VALUES: self.n * (self.schema["value_width"] or 0),
        }
        self.runs: dict[int, bytes] = {}
        at = 0
        for kind, section in self.sections.items():
            if kind >= FINGERPRINTS:
                require(len(section) == lengths.get(kind, len(section)), f"section {kind}: wrong length")
                end = at + ceil_div(len(section), BLOCK) * 8
                run = self.runs[kind] = self.sections[BLOCK_SUMS][at:end]
                require(xxh3_64_intdigest(run) == self.checksums[kind], f"section {kind}: wrong checksum")
                at = end
        require(at == len(self.sections.get(BLOCK_SUMS, b"")), "wrong length of the block sums")

    @cached_property
    def offsets(self) -> EliasFano:
        """The offsets of variable values (§7)."""
        offsets = EliasFano(self.sections[OFFSETS])
        require(offsets.size == len(self.sections[OFFSETS]), "wrong length of the offsets")
        require(offsets.c == self.n + 1, "not n + 1 offsets")
        require(offsets.last == len(self.sections[BLOB]), "the last offset is not the blob's length")
        return offsets

    def index(self, key: bytes) -> int | None:
        """The key's index, any one for a foreign key; None if its bucket is empty (§2)."""
        return self.function.index(*hash_key(key, self.seed))

    def _present(self, key: bytes) -> int | None:
        hi, lo = hash_key(key, self.seed)
        i = self.function.index(hi, lo)
        return i if i is not None and self.fingerprint(i) == hi & (1 << self.fingerprint_bits) - 1 else None

    def contains(self, key: bytes) -> bool:
        """Whether the key is present (§7)."""
        return self._present(key) is not None

    def fingerprint(self, i: int) -> int:
        """The fingerprint at an index, 0 in a file without (§7)."""
        w: int = self.fingerprint_bits
        mask = (1 << w) - 1
        if not 0 <= i < self.n:
            raise IndexError(i)
        span = self.sections[FINGERPRINTS][i * w // 8 : (i * w + w + 7) // 8] if w else b""
        return int.from_bytes(span, "little") >> i * w % 8 & mask

    def value(self, i: int) -> bytes:
        """The bytes of the value at an index (§7)."""
        require(self.schema["values"] is not None, "the file has no values")
        if not 0 <= i < self.n:
            raise IndexError(i)
        width = self.schema["value_width"]
        if width is not None:
            return self.sections[VALUES][i * width : (i + 1) * width]
        start, end = self.offsets[i], self.offsets[i + 1]
        require(start <= end <= self.offsets.last, f"wrong offsets of value {i}")
        return self.sections[BLOB][start:end]

    def get(self, key: bytes) -> bytes | None:
        """The key's value, None if the key is not present."""
        i = self._present(key)
        return None if i is None else self.value(i)

    def verify(self) -> None:
        """Check the data sections' blocks, all sequences, the extent of every bucket, and padding."""
        for kind, run in self.runs.items():
            require(block_sums(self.sections[kind]) == run, f"section {kind}: a wrong block")
        self.function.check()
        if self.fingerprint_bits:
            padding = unpack(self.sections[FINGERPRINTS])[self.n * self.fingerprint_bits :]
            require("1" not in padding, "padding of fingerprints is not zero")
        if OFFSETS in self.sections:
            self.offsets.check()
            require(self.offsets[0] == 0, "the first offset is not 0")
