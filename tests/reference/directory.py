"""The directories (§5): of `brute` and `rotation`, and of `chained`. Both give (K_i, P_i) for i = 0 … B."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from .bits import M64, ceil_div, require, words
from .chained import Params
from .sequences import EliasFano, elias_fano_encode

Point = tuple[int, int]


def lower_hull(points: dict[int, int]) -> list[Point]:
    """The lower convex hull of points {x: y} from left to right, without points inside an edge."""
    hull: list[Point] = []
    for x, y in sorted(points.items()):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def slope_under(keys: list[int], starts: list[int]) -> int:
    """Of the line under all (keys, bits) of buckets that is highest at the mean n/B."""
    least: dict[int, int] = {}
    for (k, k_next), (p, p_next) in zip(pairwise(keys), pairwise(starts), strict=True):
        least[k_next - k] = min(p_next - p, least.get(k_next - k, p_next - p))
    for (m0, f0), (m1, f1) in pairwise(lower_hull(least)):
        if m1 * (len(keys) - 1) >= keys[-1]:
            return max(0, (f1 - f0 << 32) // (m1 - m0))
    return 0


def encode_rice(keys: list[int], starts: list[int], slope: int) -> bytes:
    """The directory of K_0 … K_B and P_0 … P_B."""
    offsets = [p - (slope * k >> 32) for k, p in zip(keys, starts, strict=True)]
    kmin = min((b - a for a, b in pairwise(keys)), default=0)
    pmin = min((b - a for a, b in pairwise(offsets)), default=0)
    steps = (keys, kmin), (offsets, pmin)
    sequences = ([v - i * step for i, v in enumerate(sequence)] for sequence, step in steps)
    return struct.pack("<QQq", kmin, slope, pmin) + b"".join(map(elias_fano_encode, sequences))


class RiceDirectory:
    """Reader of the directory of `buckets` buckets of `brute` or `rotation`."""

    def __init__(self, data: bytes, buckets: int) -> None:
        require(len(data) >= 24, "directory cut off")
        self.kmin, self.slope, self.pmin = struct.unpack_from("<QQq", data)
        self.counts = EliasFano(data[24:])
        self.offsets = EliasFano(data[24 + self.counts.size :])
        require(24 + self.counts.size + self.offsets.size == len(data), "wrong length of the directory")
        require(self.counts.c == self.offsets.c == buckets + 1, "the directory is not one of B buckets")

    def __getitem__(self, i: int) -> tuple[int, int]:
        k = self.counts[i] + i * self.kmin
        return k, self.offsets[i] + i * self.pmin + (self.slope * k >> 32)

    def encoded(self, keys: list[int], starts: list[int]) -> bytes:
        """The directory of these buckets with the same slope: a reader takes any."""
        return encode_rice(keys, starts, self.slope if len(keys) > 1 else 0)


LINE, LINE_KEYS = 64, 6  # bytes of a line, and of the number of keys before it
CHAIN_HEAD = struct.Struct("<QqQQQ24s")
PER_LINE = {1: 58, 2: 28, 4: 13}


def line_over(params: Params, sizes: Sequence[int]) -> tuple[int, int]:
    """(A, D) of the line along which the bit strings of buckets of these sizes start."""
    if not sizes:
        return 0, 0
    below = lower_hull({m: -params.length(m) for m in sizes})
    edges = list(pairwise(below))
    chosen = next((edge for edge in edges if edge[1][0] * len(sizes) >= sum(sizes)), edges[-1] if edges else None)
    rise = 0
    if chosen:
        (m0, f0), (m1, f1) = chosen
        rise = max(0, (f0 - f1 << 16) // (m1 - m0))
    return rise, max((params.length(m) << 16) - rise * m for m in sizes)


def line_start(rise: int, step: int, keys: int, bucket: int) -> int:
    """P of a bucket with so many keys before it."""
    return (rise * keys + step * bucket & M64) >> 16


def encode_chained(line: tuple[int, int], sizes: Sequence[int], salts: Mapping[int, int]) -> bytes:
    """The directory of buckets of these sizes; `salts` has the root salts of the side table, by bucket."""
    kmin = min(sizes, default=0)
    grow = [m - kmin for m in sizes]
    before = [*accumulate(sizes, initial=0)]

    def entries(width: int) -> list[list[int]]:
        lines = [grow[i : i + PER_LINE[width]] for i in range(0, len(grow), PER_LINE[width])]
        return lines if width == 1 else [[0, *accumulate(line)] for line in lines]

    width = 1
    if max(grow, default=0) > 255:
        width = 2 if all(entry < 1 << 16 for line in entries(2) for entry in line) else 4
    body = b""
    for number, line_entries in enumerate(entries(width)):
        packed = b"".join(entry.to_bytes(width, "little") for entry in line_entries)
        body += packed.ljust(LINE - LINE_KEYS, b"\0")
        body += before[number * PER_LINE[width]].to_bytes(LINE_KEYS, "little")
    table = [word for bucket in sorted(salts) for word in (bucket, salts[bucket])]
    return CHAIN_HEAD.pack(*line, kmin, width, len(salts), bytes(24)) + body + words(table)


class ChainedDirectory:
    """Reader of the directory of `buckets` buckets of `chained`; `salts` is its side table."""

    def __init__(self, data: bytes, buckets: int) -> None:
        require(len(data) >= CHAIN_HEAD.size, "directory cut off")
        self.rise, self.step, self.kmin, self.width, salts, zeros = CHAIN_HEAD.unpack_from(data)
        require(self.width in PER_LINE and not any(zeros), "the directory's head makes no sense")
        self.buckets, self.per_line = buckets, PER_LINE[self.width]
        end = CHAIN_HEAD.size + LINE * ceil_div(buckets, self.per_line)
        require(end + 16 * salts == len(data), "wrong length of the directory")
        self.lines = [data[i : i + LINE] for i in range(CHAIN_HEAD.size, end, LINE)]
        self.salts = dict(struct.iter_unpack("<QQ", data[end:]))

    def _entry(self, line: bytes, j: int) -> int:
        return int.from_bytes(line[self.width * j : self.width * (j + 1)], "little")

    def __getitem__(self, i: int) -> tuple[int, int]:
        """What is read of a bucket's end, (K_{i+1}, …), comes from that bucket's own line."""
        if not 0 <= i <= self.buckets:
            raise IndexError(i)
        if i == 0:
            return 0, 0
        number, last = divmod(i - 1, self.per_line)
        line, past = self.lines[number], last + 1
        more = sum(self._entry(line, j) for j in range(past)) if self.width == 1 else self._entry(line, past)
        k = int.from_bytes(line[-LINE_KEYS:], "little") + past * self.kmin + more
        return k, line_start(self.rise, self.step, k, i)

    def encoded(self, keys: list[int], starts: list[int]) -> bytes:
        """The directory of these buckets with the same line: a reader takes any."""
        sizes = [b - a for a, b in pairwise(keys)]
        return encode_chained((self.rise, self.step), sizes, self.salts)
