"""Reader and builder of mphfstore files in plain Python, written from mphfstore/FORMAT.md alone.

Section signs (§) name FORMAT.md's sections. Bit strings are `str` of '0' and '1', bit 0 first.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import accumulate, count, pairwise
from math import isqrt
from typing import Any

from xxhash import xxh3_64_intdigest, xxh3_128_intdigest

MAGIC = b"\x89MPH\r\n\x1a\n"
HEADER = struct.Struct("<8sHHI QQ QQQ II 6B H 32s 24s")
ENTRY = struct.Struct("<IIQQQ")
METHODS = {"brute": 1, "rotation": 2}
MPHF, FILTER, STORE = KINDS = 1, 2, 3
SCHEMA, TREES, DIRECTORY, BLOCK_SUMS, METADATA = 1, 2, 3, 4, 5
FINGERPRINTS, VALUES, OFFSETS, BLOB = 16, 17, 18, 19
BLOCK = MAX_BUCKET = 65536
ESCAPE = 65535
GOLDEN = 0x9E3779B97F4A7C15
M32, M64 = 2**32 - 1, 2**64 - 1


def require(condition: bool, reason: str) -> None:
    """Raise ValueError(reason) unless `condition`."""
    if not condition:
        raise ValueError(reason)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def words(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def to_bits(x: int, k: int) -> str:
    """The lowest k bits of x."""
    return format(x & (1 << k) - 1, f"0{k}b")[::-1] if k else ""


def number(bits: str, at: int, k: int) -> int:
    """The number of k bits at bit `at`."""
    return int(bits[at : at + k][::-1], 2) if k else 0


def pack(bits: str, size: int) -> bytes:
    """`bits`, then zero bits, in `size` bytes."""
    return int(bits[::-1] or "0", 2).to_bytes(size, "little")


def unpack(data: bytes) -> str:
    return to_bits(int.from_bytes(data, "little"), 8 * len(data))


def after_ones(bits: str, at: int, ones: int) -> int:
    """The bit after the next `ones` one bits at or after bit `at`."""
    for _ in range(ones):
        at = bits.index("1", at) + 1
    return at


def hash_key(key: bytes, seed: int) -> tuple[int, int]:
    """(hi, lo) of a key (§2)."""
    return divmod(xxh3_128_intdigest(key, seed), 1 << 64)


def bucket_count(n: int, bucket_size: int) -> int:
    """B (§2)."""
    partitions = min(65536, 1 << max(1, n // 16384).bit_length() - 1)
    return ceil_div(ceil_div(n, bucket_size), partitions) * partitions


@cache
def lg(x: int) -> int:
    """log₂ x in 32.32, x ≥ 1 (§3)."""
    e = x.bit_length() - 1
    y, fraction = x << 63 >> e, 0
    for _ in range(32):
        y = y * y >> 63
        bit = y >> 64
        y, fraction = y >> bit, fraction << 1 | bit
    return (e << 32) + fraction


LG_SUMS = [0]
ROOTS = [2**63]  # r_j of §3
for _ in range(32):
    ROOTS.append(isqrt(ROOTS[-1] << 64))


def G(m: int) -> int:
    """m·lg(m) − Σ lg(i) (§3)."""
    while len(LG_SUMS) <= m:
        LG_SUMS.append(LG_SUMS[-1] + lg(len(LG_SUMS)))
    return m * lg(m) - LG_SUMS[m] if m else 0


class Params:
    """Method, "brute" or "rotation", and tree shape (§3, τ of §4); fanouts default to the specification's."""

    lg = staticmethod(lg)
    G = staticmethod(G)

    def __init__(self, method: str, leaf: int, fanout1: int | None = None, fanout2: int | None = None) -> None:
        self.method, self.leaf = method, leaf
        self.fanout1 = max(2, ceil_div(35 * leaf + 50, 100)) if fanout1 is None else fanout1
        default2 = 2 if leaf < 7 else ceil_div(21 * leaf + 90, 100)
        self.fanout2 = default2 if fanout2 is None else fanout2
        self._taus: dict[int, int] = {}
        self._sums: dict[int, tuple[int, int]] = {0: (0, 0), 1: (0, 0)}
        require(method in METHODS, f"unknown method {method!r}")
        require(2 <= leaf <= 24, f"leaf size {leaf} is not in 2 … 24")
        require(2 <= self.fanout1 <= 9, f"fanout1 {self.fanout1} is not in 2 … 9")
        require(2 <= self.fanout2 <= 9, f"fanout2 {self.fanout2} is not in 2 … 9")
        require(self.fanout1 * leaf <= 254, "fanout1 · leaf exceeds 254")

    def shape(self, m: int) -> tuple[int, int] | None:
        """(fanout, unit) of a splitting of m keys; None for a leaf and for m ≤ 1."""
        u1 = self.fanout1 * self.leaf
        u2 = self.fanout2 * u1
        if m <= self.leaf:
            return None
        if m <= u2:
            unit = self.leaf if m <= u1 else u1
            return ceil_div(m, unit), unit
        return 2, u2 * ((m + u2) // (2 * u2))

    def parts(self, m: int) -> list[int]:
        """Keys in each part of a splitting of m keys; empty for a leaf and for m ≤ 1."""
        fanout, unit = self.shape(m) or (0, 0)
        return [unit] * (fanout - 1) + [m - unit * (fanout - 1)] if fanout else []

    def _subtree(self, m: int) -> tuple[int, int]:
        if m not in self._sums:
            below = [self._subtree(part) for part in self.parts(m)]
            self._sums[m] = 1 + sum(b[0] for b in below), self.tau(m) + sum(b[1] for b in below)
        return self._sums[m]

    def nodes(self, m: int) -> int:
        """Numbers in the tree of m keys."""
        return self._subtree(m)[0]

    def fixed_bits(self, m: int) -> int:
        """Bits of the fixed parts of all numbers in the tree of m keys."""
        return self._subtree(m)[1]

    def log2_inverse_p(self, m: int) -> int:
        """L(m) in 32.32, m ≥ 2."""
        return max(0, G(m) - sum(map(G, self.parts(m))))

    def p(self, m: int) -> int:
        """Probability in 0.64 that a number fits a node of m ≥ 2 keys."""
        whole, fraction = divmod(self.log2_inverse_p(m), 1 << 32)
        require(whole <= 48, f"a number that fits a node of {m} keys is too improbable")
        p = M64
        for j in range(1, 33):
            if fraction >> 32 - j & 1:
                p = p * ROOTS[j] >> 64
        return p >> whole

    def tau(self, m: int) -> int:
        """Bits of the fixed part of the number of a node of m ≥ 2 keys."""
        if m not in self._taus:
            q, t = 2**64 - self.p(m), 0
            while q > GOLDEN:
                q, t = q * q >> 64, t + 1
            self._taus[m] = t
        return self._taus[m]


def node_hash(lo: int, depth: int, x: int, m: int) -> int:
    """q, in 0 … m − 1 (§4)."""
    y = lo + (depth + 1) * GOLDEN + x & M64
    v = (y ^ y >> 32) & M32
    v = (v ^ v >> 16) * 0x85EBCA6B & M32
    v = (v ^ v >> 13) * 0xC2B2AE35 & M32
    v ^= v >> 16
    return (v >> 16) * m >> 16


def part_of_position(parts: list[int]) -> list[int]:
    """q div unit of §3 for every q, but no more than the last part: that of a halving may exceed its unit."""
    return [i for i, size in enumerate(parts) for _ in range(size)]


def search_parts(los: list[int], depth: int, parts: list[int]) -> int:
    """The smallest x that sends parts[i] keys to part i; a leaf has m parts of one key (§4).

    The hash is node_hash's, inlined: what exceeds 64 bits of y falls to the first mask, and v's last step
    leaves its upper half as it is.
    """
    m = len(los)
    part_of = part_of_position(parts)
    starts = [lo + (depth + 1) * GOLDEN & M64 for lo in los]
    for x in count():
        room = parts.copy()
        for y in starts:
            y += x
            v = (y ^ y >> 32) & M32
            v = (v ^ v >> 16) * 0x85EBCA6B & M32
            part = part_of[((v ^ v >> 13) * 0xC2B2AE35 >> 16 & 0xFFFF) * m >> 16]
            if not room[part]:
                break
            room[part] -= 1
        else:
            return x
    raise AssertionError


def search_rotation(los: list[int], depth: int) -> int:
    """The smallest x = ℓ·t + r of a leaf of exactly ℓ keys under `rotation` (§4)."""
    leaf = len(los)
    for base in count(0, leaf):
        seen = [0, 0]  # positions of the keys with even and with odd lo
        for lo in los:
            position = 1 << node_hash(lo, depth, base, leaf)
            if seen[lo & 1] & position:
                break
            seen[lo & 1] |= position
        else:
            even, odd = seen
            for r in range(leaf):
                if not even & (odd << r | odd >> leaf - r):
                    return base + r
    raise AssertionError


def search_tree(params: Params, los: list[int], depth: int = 0) -> Iterator[tuple[int, int]]:
    """(m, x) of the nodes of at least 2 keys, in preorder."""
    m = len(los)
    parts = params.parts(m)
    if m > 1 and not parts:
        rotate = params.method == "rotation" and m == params.leaf
        yield m, search_rotation(los, depth) if rotate else search_parts(los, depth, [1] * m)
    elif parts:
        x = search_parts(los, depth, parts)
        yield m, x
        part_of = part_of_position(parts)
        groups: list[list[int]] = [[] for _ in parts]
        for lo in los:
            groups[part_of[node_hash(lo, depth, x, m)]].append(lo)
        for group in groups:
            yield from search_tree(params, group, depth + 1)


def build_bucket(params: Params, los: list[int]) -> str:
    """The bit string of a bucket of keys with distinct `lo` (§4)."""
    found = [(x, params.tau(m)) for m, x in search_tree(params, los)]
    fixed = (to_bits(x, tau) for x, tau in found)
    unary = ("0" * (x >> tau) + "1" for x, tau in found)
    return "".join([*fixed, *unary])


def locate(params: Params, lo: int, m: int, bits: str, at: int) -> int:
    """Position of a key in a bucket of m ≥ 1 keys whose bit string starts at bits[at] (§3, §4)."""
    fixed, unary = at, at + params.fixed_bits(m)
    position = depth = 0
    while m > 1:
        tau = params.tau(m)
        one = bits.index("1", unary)
        x = (one - unary << tau) + number(bits, fixed, tau)
        fixed, unary = fixed + tau, one + 1
        parts = params.parts(m)
        if not parts:
            if params.method == "rotation" and m == params.leaf:
                q = node_hash(lo, depth, x - x % m, m)
                return position + ((q + x) % m if lo & 1 else q)
            return position + node_hash(lo, depth, x, m)
        part = min(node_hash(lo, depth, x, m) // parts[0], len(parts) - 1)
        position += parts[0] * part
        fixed += params.fixed_bits(parts[0]) * part
        unary = after_ones(bits, unary, params.nodes(parts[0]) * part)
        m, depth = parts[part], depth + 1
    return position


def elias_fano_layout(c: int, last: int) -> tuple[int, list[int]]:
    """λ and the words of long samples, short samples, lower, upper (§5)."""
    low = max(1, last // c).bit_length() - 1
    shorts = ceil_div(ceil_div(c, 256), 4)
    return low, [ceil_div(c, 8192), shorts, ceil_div(c * low, 64) + 1, ceil_div(c + (last >> low), 64)]


def elias_fano_encode(values: Sequence[int]) -> bytes:
    """The words of a non-decreasing sequence of at least one number below 2^64 (§5)."""
    require(len(values) > 0, "an Elias–Fano sequence has at least one number")
    ascending = all(a <= b for a, b in pairwise([0, *values, M64]))
    require(ascending, "an Elias–Fano sequence does not decrease and stays below 2^64")
    c, last = len(values), values[-1]
    low, (_, n_short, n_lower, n_upper) = elias_fano_layout(c, last)
    ones = [(v >> low) + i for i, v in enumerate(values)]
    shorts = [min(ESCAPE, ones[i] - ones[i - i % 8192]) for i in range(0, c, 256)]
    lower = "".join(to_bits(v, low) for v in values)
    upper = "".join("0" * (b - a - 1) + "1" for a, b in pairwise([-1, *ones]))
    short = struct.pack(f"<{len(shorts)}H", *shorts).ljust(8 * n_short, b"\0")
    return words([c, last, *ones[::8192]]) + short + pack(lower, 8 * n_lower) + pack(upper, 8 * n_upper)


class EliasFano:
    """Reader of the sequence at the start of `data`, of which `size` bytes are its own (§5)."""

    def __init__(self, data: bytes) -> None:
        require(len(data) >= 16, "Elias–Fano sequence cut off")
        self.c, self.last = struct.unpack_from("<QQ", data)
        require(self.c > 0, "Elias–Fano sequence without numbers")
        self.low, lengths = elias_fano_layout(self.c, self.last)
        ends = list(accumulate((8 * k for k in lengths), initial=16))
        self.size = ends[-1]
        require(self.size <= len(data), "Elias–Fano sequence cut off")
        self.data = data[: self.size]
        longs, shorts, lower, upper = (data[a:b] for a, b in pairwise(ends))
        self.longs = struct.unpack(f"<{len(longs) // 8}Q", longs)
        self.shorts = struct.unpack(f"<{len(shorts) // 2}H", shorts)
        self.lower, self.upper = unpack(lower), unpack(upper)

    def __len__(self) -> int:
        return self.c

    def _value(self, i: int, one: int) -> int:
        return (one - i << self.low) + number(self.lower, i * self.low, self.low)

    def __getitem__(self, i: int) -> int:
        if not 0 <= i < self.c:
            raise IndexError(i)
        k = i // 256
        while self.shorts[k] == ESCAPE and k % 32:
            k -= 1
        sample = self.longs[k // 32] + self.shorts[k]
        return self._value(i, after_ones(self.upper, sample, i - 256 * k + 1) - 1)

    def values(self) -> list[int]:
        """All numbers, by a scan of `upper` without samples."""
        ones = re.finditer("1", self.upper)
        return [self._value(i, one.start()) for i, one in enumerate(ones)]

    def check(self) -> None:
        """Raise ValueError unless `last`, samples and padding are those of the numbers."""
        require(self.upper.count("1") == self.c, "Elias–Fano: not c ones in upper")
        again = elias_fano_encode(self.values())
        require(again == self.data, "Elias–Fano: `last`, samples or padding disagree with the numbers")


def directory_slope(keys: list[int], starts: list[int]) -> int:
    """Of the line under all (keys, bits) of buckets that is highest at the mean n/B (§5)."""
    least: dict[int, int] = {}
    for (k, k_next), (p, p_next) in zip(pairwise(keys), pairwise(starts), strict=True):
        least[k_next - k] = min(p_next - p, least.get(k_next - k, p_next - p))
    hull: list[tuple[int, int]] = []
    for m, f in sorted(least.items()):
        while len(hull) > 1:
            (m0, f0), (m1, f1) = hull[-2:]
            if (f1 - f0) * (m - m0) < (f - f0) * (m1 - m0):
                break
            hull.pop()
        hull.append((m, f))
    for (m0, f0), (m1, f1) in pairwise(hull):
        if m1 * (len(keys) - 1) >= keys[-1]:
            return max(0, (f1 - f0 << 32) // (m1 - m0))
    return 0


def encode_directory(keys: list[int], starts: list[int], slope: int) -> bytes:
    """The directory of K_0 … K_B and P_0 … P_B (§5)."""
    offsets = [p - (slope * k >> 32) for k, p in zip(keys, starts, strict=True)]
    kmin = min((b - a for a, b in pairwise(keys)), default=0)
    pmin = min((b - a for a, b in pairwise(offsets)), default=0)
    steps = (keys, kmin), (offsets, pmin)
    sequences = ([v - i * step for i, v in enumerate(sequence)] for sequence, step in steps)
    return struct.pack("<QQq", kmin, slope, pmin) + b"".join(map(elias_fano_encode, sequences))


class Directory:
    """Reader of the directory of `buckets` buckets (§5)."""

    def __init__(self, data: bytes, buckets: int) -> None:
        require(len(data) >= 24, "directory cut off")
        self.kmin, self.slope, self.pmin = struct.unpack_from("<QQq", data)
        self.counts = EliasFano(data[24:])
        self.offsets = EliasFano(data[24 + self.counts.size :])
        require(24 + self.counts.size + self.offsets.size == len(data), "wrong length of the directory")
        require(self.counts.c == self.offsets.c == buckets + 1, "the directory is not one of B buckets")

    def __getitem__(self, i: int) -> tuple[int, int]:
        """(K_i, P_i)."""
        k = self.counts[i] + i * self.kmin
        return k, self.offsets[i] + i * self.pmin + (self.slope * k >> 32)


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse_json(data: bytes) -> Any:
    try:
        return json.loads(data.decode(), parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def to_json(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def check_schema(schema: Any) -> None:
    """Raise ValueError unless `schema` is one of §6; dtypes of values are not looked into."""
    names = ["key_type", "keys", "value_width", "values"]
    require(isinstance(schema, dict) and sorted(schema) == names, f"the schema is no object of {names}")
    key_type, keys, width, values = (schema[name] for name in names)
    known = isinstance(key_type, str) and re.fullmatch(r"bytes|<[iu][248]|[|<][iu]1", key_type)
    require(bool(known), f"unknown key_type {key_type!r}")
    require(keys in (None, "fingerprint"), f"unknown keys {keys!r}")
    require(values is None or isinstance(values, str | list), f"unknown values {values!r}")
    require(width is None or (type(width) is int and width >= 0), f"value_width {width!r} is no width")
    require(values is not None or width is None, "value_width without values")


def section_kinds(schema: dict, fingerprint_bits: int, metadata: bool) -> list[int]:
    """The kinds of sections that a file has, ascending (§1)."""
    data = [FINGERPRINTS] * (fingerprint_bits > 0)
    if schema["values"] is not None:
        data += [OFFSETS, BLOB] if schema["value_width"] is None else [VALUES]
    return [SCHEMA, TREES, DIRECTORY] + [BLOCK_SUMS] * bool(data) + [METADATA] * metadata + data


def block_sums(section: bytes) -> bytes:
    return words([xxh3_64_intdigest(section[i : i + BLOCK]) for i in range(0, len(section), BLOCK)])


def encode_values(values: list[bytes | None], schema: dict) -> dict[int, bytes]:
    """The sections of the values, given in the order of their indices (§7)."""
    if schema["values"] is None:
        require(all(v is None for v in values), "a value, but the schema has none")
        return {}
    given = [v for v in values if v is not None]
    require(len(given) == len(values), "a key without value")
    blob, width = b"".join(given), schema["value_width"]
    if width is None:
        return {OFFSETS: elias_fano_encode([*accumulate(map(len, given), initial=0)]), BLOB: blob}
    require(all(len(v) == width for v in given), f"a value is not {width} bytes wide")
    return {VALUES: blob}


def distribute(keys: Sequence[bytes], seed: int, buckets: int) -> list[dict[int, tuple[int, bytes]]] | None:
    """{lo: (hi, key)} of every bucket (§2); None if two keys agree in bucket and `lo`."""
    filled: list[dict[int, tuple[int, bytes]]] = [{} for _ in range(buckets)]
    for key in keys:
        hi, lo = hash_key(key, seed)
        filled[hi * buckets >> 64][lo] = hi, key
    return filled if sum(map(len, filled)) == len(keys) else None


def build(
    pairs: Sequence[tuple[bytes, bytes | None]],
    *,
    params: Params,
    bucket_size: int,
    seed: int,
    fingerprint_bits: int,
    kind: int,
    schema: dict,
    metadata: Any = None,
) -> bytes:
    """The file of `pairs`, without metadata section if `metadata` is None. ValueError on duplicate keys."""
    check_schema(schema)
    require(1 <= bucket_size <= 65535, "bucket size is not in 1 … 65535")
    require(0 <= fingerprint_bits <= 32, "fingerprint bits are not in 0 … 32")
    require(kind in KINDS, f"unknown kind {kind}")
    values, n = dict(pairs), len(pairs)
    require(len(values) == n, "duplicate keys")
    buckets = bucket_count(n, bucket_size)
    for _ in range(9):
        filled = distribute(list(values), seed, buckets)
        if filled is not None:
            break
        seed = seed + 1 & M64
    else:
        raise ValueError("keys agree in bucket and lo under nine seeds")
    largest = max(map(len, filled), default=0)
    require(largest <= MAX_BUCKET, f"a bucket of {largest} keys")

    strings: list[str] = []
    order: list[tuple[int, bytes]] = []  # (hi, key) at every index
    for bucket in filled:
        bits = build_bucket(params, list(bucket))
        strings.append(bits)
        placed = {locate(params, lo, len(bucket), bits, 0): key for lo, key in bucket.items()}
        order += [placed[position] for position in range(len(bucket))]
    starts = [*accumulate(map(len, strings), initial=0)]
    before = [*accumulate(map(len, filled), initial=0)]
    prints = "".join(to_bits(hi, fingerprint_bits) for hi, _ in order)
    sections = {
        SCHEMA: to_json(schema),
        TREES: bytes(8) + pack("".join(strings), ceil_div(starts[-1], 64) * 8) + bytes(8),
        DIRECTORY: encode_directory(before, starts, directory_slope(before, starts)),
        METADATA: to_json(metadata),
        FINGERPRINTS: pack(prints, ceil_div(len(prints), 8) + 8),
        **encode_values([values[key] for _, key in order], schema),
    }
    kinds = section_kinds(schema, fingerprint_bits, metadata is not None)
    sections[BLOCK_SUMS] = b"".join(block_sums(sections[k]) for k in kinds if k >= FINGERPRINTS)

    table, body, base = b"", b"", HEADER.size + ENTRY.size * len(kinds)
    for k in kinds:
        body += bytes(-(base + len(body)) % 64)
        summed = block_sums(sections[k]) if k >= FINGERPRINTS else sections[k]
        table += ENTRY.pack(k, 0, base + len(body), len(sections[k]), xxh3_64_intdigest(summed))
        body += sections[k]
    shape = METHODS[params.method], params.leaf, params.fanout1, params.fanout2
    counts = n, seed, buckets, largest, bucket_size, *shape, fingerprint_bits, kind
    fields = MAGIC, 1, len(kinds), 0, base + len(body), 0, *counts, 0, bytes(32), bytes(24)
    head = bytearray(HEADER.pack(*fields) + table)
    struct.pack_into("<Q", head, 24, xxh3_64_intdigest(bytes(head)))
    return bytes(head) + body


class Reader:
    """A file in memory. The constructor checks all but the data sections' bytes, `verify` these too (§1)."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = data = bytes(data)
        require(data[:8] == MAGIC, "wrong magic: not an mphfstore file, or damaged by a text-mode transfer")
        require(len(data) >= HEADER.size, "file cut off in its header")
        (_, version, entries, features, length, checksum, self.n, self.seed, self.buckets,
         self.largest_bucket, self.bucket_size, method, self.leaf, self.fanout1, self.fanout2,
         self.fingerprint_bits, self.kind, zero, parameters, zeros) = HEADER.unpack_from(data)  # fmt: skip
        require(version == 1, f"expected format version 1, got {version}")
        require(features == 0, f"unknown required features {features:#x}")
        require(entries <= 64, f"{entries} sections, at most 64 allowed")
        require(length == len(data), f"expected {length} bytes, got {len(data)}")
        end = HEADER.size + ENTRY.size * entries
        require(end <= length, "file cut off in its section table")
        require(xxh3_64_intdigest(data[:24] + bytes(8) + data[32:end]) == checksum, "wrong header checksum")
        require(not zero and not any(parameters + zeros), "a field that has to be zero is not")
        require(method in METHODS.values(), f"unknown method {method}")
        self.method = {code: name for name, code in METHODS.items()}[method]
        self.params = Params(self.method, self.leaf, self.fanout1, self.fanout2)
        require(self.kind in KINDS, f"unknown kind {self.kind}")
        require(self.fingerprint_bits <= 32, f"{self.fingerprint_bits} fingerprint bits, at most 32 allowed")
        require((self.buckets == 0) == (self.n == 0), "B is not 0 exactly if n is")
        require(self.largest_bucket <= MAX_BUCKET, f"largest bucket of {self.largest_bucket} keys")
        require(1 <= self.bucket_size <= 65535, "bucket size is not in 1 … 65535")
        self._read_sections(list(ENTRY.iter_unpack(data[HEADER.size : end])), end)
        self._check_data_sections()

        self.directory = Directory(self.sections[DIRECTORY], self.buckets)
        keys, bits = self.directory[self.buckets]
        require(keys == self.n, f"the directory counts {keys} keys, the header {self.n}")
        fits = bits >= 0 and len(self.sections[TREES]) == ceil_div(bits, 64) * 8 + 16
        require(fits, "wrong length of the trees")
        self.bits = unpack(self.sections[TREES])

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

    def _locate(self, hi: int, lo: int) -> int | None:
        if self.n == 0:
            return None
        bucket = hi * self.buckets >> 64
        (first, start), (end, _) = self.directory[bucket], self.directory[bucket + 1]
        require(first <= end <= first + self.largest_bucket, f"bucket {bucket} has {end - first} keys")
        require(start >= 0, f"the bit string of bucket {bucket} starts at {start}")
        return first + locate(self.params, lo, end - first, self.bits, 64 + start) if first < end else None

    def index(self, key: bytes) -> int | None:
        """The key's index, any one for a foreign key; None if its bucket is empty (§2)."""
        return self._locate(*hash_key(key, self.seed))

    def _present(self, key: bytes) -> int | None:
        hi, lo = hash_key(key, self.seed)
        i = self._locate(hi, lo)
        return i if i is not None and self.fingerprint(i) == hi & (1 << self.fingerprint_bits) - 1 else None

    def contains(self, key: bytes) -> bool:
        """Whether the key is present (§7)."""
        return self._present(key) is not None

    def fingerprint(self, i: int) -> int:
        """The fingerprint at an index, 0 in a file without (§7)."""
        w = self.fingerprint_bits
        if not 0 <= i < self.n:
            raise IndexError(i)
        span = self.sections[FINGERPRINTS][i * w // 8 : (i * w + w + 7) // 8] if w else b""
        return int.from_bytes(span, "little") >> i * w % 8 & (1 << w) - 1

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
        buckets = [self.directory[i] for i in range(self.buckets + 1)]
        keys, starts = ([bucket[part] for bucket in buckets] for part in (0, 1))
        for numbers in keys, starts:
            require(numbers[0] == 0 and sorted(numbers) == numbers, "the directory does not ascend from 0")
        sizes = [b - a for a, b in pairwise(keys)]
        require(max(sizes, default=0) == self.largest_bucket, "wrong size of the largest bucket")
        again = encode_directory(keys, starts, self.directory.slope if self.n else 0)  # any slope will do
        require(again == self.sections[DIRECTORY], "directory: steps, samples or padding are wrong")
        for i, m in enumerate(sizes):
            end = after_ones(self.bits, 64 + starts[i] + self.params.fixed_bits(m), self.params.nodes(m))
            require(end == 64 + starts[i + 1], f"bucket {i}: wrong length of its bit string")
        padding = self.bits[:64] + self.bits[64 + starts[-1] :]
        if self.fingerprint_bits:
            padding += unpack(self.sections[FINGERPRINTS])[self.n * self.fingerprint_bits :]
        require("1" not in padding, "padding of trees or fingerprints is not zero")
        if OFFSETS in self.sections:
            self.offsets.check()
            require(self.offsets[0] == 0, "the first offset is not 0")
