"""Files read and checked (§1, §2, §7)."""

from __future__ import annotations

from functools import cached_property

from xxhash import xxh3_64_intdigest

from .bits import MAX_BUCKET, ceil_div, require, unpack
from .chained import Params as ChainedParams
from .function import Function, FunctionReader, Params
from .rice import Params as RiceParams
from .scan import Prefilter
from .sections import (
    BLOB,
    BLOCK,
    BLOCK_SUMS,
    BLOCKS,
    DICTIONARY,
    DIRECTORY,
    ENTRY,
    FINGERPRINTS,
    HEADER,
    KEY_OFFSETS,
    KEYS,
    KINDS,
    MAGIC,
    METADATA,
    METHODS,
    OFFSETS,
    ORDINALS,
    SCAN,
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
            ORDINALS: ceil_div(self.n * self.ordinal_bits, 8) + 8,
        }
        if self.schema.get("key_width") is not None:
            lengths[KEYS] = self.n * self.schema["key_width"]
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
    def prefilter(self) -> Prefilter:
        """Where in a text keys may begin (§8)."""
        return Prefilter.decode(self.sections[SCAN])

    @property
    def distinct(self) -> int:
        """How many values are stored."""
        distinct = self.schema.get("distinct_values", self.n)
        require("distinct_values" not in self.schema or 1 <= distinct <= self.n, f"{distinct} distinct values")
        return distinct

    @property
    def ordinal_bits(self) -> int:
        return max(0, self.distinct - 1).bit_length() if "distinct_values" in self.schema else 0

    def _sequence(self, section: int, count: int, last: int) -> EliasFano:
        sequence = EliasFano(self.sections[section])
        require(sequence.size == len(self.sections[section]), f"wrong length of section {section}")
        require(sequence.c == count, f"section {section}: not {count} numbers")
        require(sequence.last == last, f"section {section}: its last number is not {last}")
        return sequence

    @cached_property
    def key_offsets(self) -> EliasFano:
        return self._sequence(KEY_OFFSETS, self.n + 1, len(self.sections[KEYS]))

    @cached_property
    def block_starts(self) -> EliasFano:
        blocks = ceil_div(self.schema["blob_size"], self.schema["block_size"])
        return self._sequence(BLOCKS, blocks + 1, len(self.sections[BLOB]))

    def key(self, i: int) -> bytes:
        """The key at an index, if keys are stored (§7)."""
        require(self.schema["keys"] == "exact", "the file has no keys")
        if not 0 <= i < self.n:
            raise IndexError(i)
        width = self.schema["key_width"]
        if width is not None:
            return self.sections[KEYS][i * width : (i + 1) * width]
        start, end = self.key_offsets[i], self.key_offsets[i + 1]
        require(start <= end <= self.key_offsets.last, f"wrong offsets of key {i}")
        return self.sections[KEYS][start:end]

    def ordinal(self, i: int) -> int:
        """The number of the value at an index (§7)."""
        if "distinct_values" not in self.schema:
            return i
        o = self.ordinal_bits
        number = int.from_bytes(self.sections[ORDINALS], "little") >> i * o & (1 << o) - 1
        require(number < self.distinct, f"value {number} of {self.distinct}")
        return number

    def _block(self, k: int) -> bytes:
        start, end = self.block_starts[k], self.block_starts[k + 1]
        dictionary, size = self.sections[DICTIONARY], self.schema["block_size"]
        import zstandard  # only here: all other files need nothing but xxhash

        options = {"dict_data": zstandard.ZstdCompressionDict(dictionary)} if dictionary else {}
        frame = self.sections[BLOB][start:end]
        expected = min(size, self.schema["blob_size"] - k * size)
        require(zstandard.frame_content_size(frame) == expected, f"block {k} has not {expected} bytes")
        return zstandard.ZstdDecompressor(**options).decompress(frame)

    def _stretch(self, start: int, end: int) -> bytes:
        """Bytes of the blob as it was before compression."""
        if "compression" not in self.schema:
            return self.sections[BLOB][start:end]
        size = self.schema["block_size"]
        first = start // size
        whole = b"".join(map(self._block, range(first, ceil_div(end, size)))) if end > start else b""
        return whole[start - first * size : end - first * size]

    @cached_property
    def offsets(self) -> EliasFano:
        """The offsets of variable values (§7)."""
        return self._sequence(OFFSETS, self.distinct + 1, self.schema.get("blob_size", len(self.sections[BLOB])))

    def index(self, key: bytes) -> int | None:
        """The key's index, any one for a foreign key; None if its bucket is empty (§2)."""
        return self.function.index(*hash_key(key, self.seed))

    def _present(self, key: bytes) -> int | None:
        hi, lo = hash_key(key, self.seed)
        i = self.function.index(hi, lo)
        if i is None or self.fingerprint(i) != hi & (1 << self.fingerprint_bits) - 1:
            return None
        return None if self.schema["keys"] == "exact" and self.key(i) != key else i

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
        j = self.ordinal(i)
        start, end = self.offsets[j], self.offsets[j + 1]
        require(start <= end <= self.offsets.last, f"wrong offsets of value {j}")
        return self._stretch(start, end)

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
        sequences = {OFFSETS: "offsets", KEY_OFFSETS: "key_offsets", BLOCKS: "block_starts"}
        for kind, name in sequences.items():
            if kind in self.sections:
                sequence = getattr(self, name)
                sequence.check()
                require(sequence[0] == 0, f"section {kind} does not begin with 0")
        if ORDINALS in self.sections:
            padding = unpack(self.sections[ORDINALS])[self.n * self.ordinal_bits :]
            require("1" not in padding, "padding of ordinals is not zero")
            require({self.ordinal(i) for i in range(self.n)} == set(range(self.distinct)), "a value nobody has")
