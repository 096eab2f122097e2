"""The function itself: the sections of trees and directory (§2, §4, §5), built from hashes and read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from . import chained, rice
from .bits import MAX_BUCKET, ceil_div, number, pack, require, unpack
from .directory import (
    ChainedDirectory,
    RiceDirectory,
    encode_chained,
    encode_rice,
    line_over,
    line_start,
    slope_under,
)

Params = rice.Params | chained.Params


class Function(NamedTuple):
    trees: bytes
    directory: bytes


def trees_section(strings: Sequence[str], starts: Sequence[int]) -> bytes:
    """Bit strings from their starts on; the last start is the end of all."""
    gaps = [begin.ljust(next_ - at, "0") for begin, (at, next_) in zip(strings, pairwise(starts), strict=True)]
    return bytes(8) + pack("".join(gaps), ceil_div(starts[-1], 64) * 8) + bytes(8)


def build_function(params: Params, buckets: Sequence[Sequence[int]]) -> Function | None:
    """Of the `lo` of the keys in every bucket; None if another seed has to be tried."""
    sizes = [len(los) for los in buckets]
    if max(sizes, default=0) > MAX_BUCKET or any(len(set(los)) < len(los) for los in buckets):
        return None
    before = [*accumulate(sizes, initial=0)]
    if isinstance(params, rice.Params):
        strings = [rice.build_bucket(params, list(los)) for los in buckets]
        starts = [*accumulate(map(len, strings), initial=0)]
        return Function(trees_section(strings, starts), encode_rice(before, starts, slope_under(before, starts)))
    built = [chained.build_bucket(params, list(los)) for los in buckets]
    solved = [bucket for bucket in built if bucket is not None]
    if len(solved) < len(built):
        return None
    line = line_over(params, sizes)
    starts = [line_start(*line, k, i) for i, k in enumerate(before)]
    salts = {i: bucket.salt for i, bucket in enumerate(solved) if bucket.bits and bucket.salt >= params.escape}
    return Function(trees_section([b.bits for b in solved], starts), encode_chained(line, sizes, salts))


class FunctionReader:
    """A function of n keys in B buckets. What the constructor leaves open, `check` looks into."""

    def __init__(self, params: Params, function: Function, n: int, buckets: int, largest: int) -> None:
        self.params, self.n, self.buckets, self.largest = params, n, buckets, largest
        self.encoded = function.directory
        self.salts: dict[int, int] = {}
        self.directory: RiceDirectory | ChainedDirectory
        if isinstance(params, rice.Params):
            self.directory = RiceDirectory(function.directory, buckets)
        else:
            self.directory = ChainedDirectory(function.directory, buckets)
            self.salts = self.directory.salts
        keys, bits = self.directory[buckets]
        require(keys == n, f"the directory counts {keys} keys, the header {n}")
        fits = bits >= 0 and len(function.trees) == ceil_div(bits, 64) * 8 + 16
        require(fits, "wrong length of the trees")
        self.bits = unpack(function.trees)

    def index(self, hi: int, lo: int) -> int | None:
        """None if the bucket is empty."""
        if self.n == 0:
            return None
        bucket = hi * self.buckets >> 64
        (first, start), (end, _) = self.directory[bucket], self.directory[bucket + 1]
        require(first <= end <= first + self.largest, f"bucket {bucket} has {end - first} keys")
        require(start >= 0, f"the bit string of bucket {bucket} starts at {start}")
        if first == end:
            return None
        if isinstance(self.params, rice.Params):
            return first + rice.locate(self.params, lo, end - first, self.bits, 64 + start)
        return first + chained.locate(self.params, lo, end - first, self.bits, 64 + start, self.salts.get(bucket))

    def check(self) -> None:
        """Raise ValueError unless the directory is one of buckets and the bit strings fill their places."""
        ends = [self.directory[i] for i in range(self.buckets + 1)]
        keys, starts = ([end[part] for end in ends] for part in (0, 1))
        for numbers in keys, starts:
            require(numbers[0] == 0 and sorted(numbers) == numbers, "the directory does not ascend from 0")
        sizes = [b - a for a, b in pairwise(keys)]
        require(max(sizes, default=0) == self.largest, "wrong size of the largest bucket")
        require(self.directory.encoded(keys, starts) == self.encoded, "directory: steps, samples or padding are wrong")
        unused = self.bits[:64] + self.bits[64 + starts[-1] :]
        for i, m in enumerate(sizes):
            begin, end = 64 + starts[i], 64 + starts[i + 1]
            if isinstance(self.params, rice.Params):
                require(
                    rice.bucket_end(self.params, m, self.bits, begin) == end, f"bucket {i}: wrong length of its bits"
                )
            else:
                used = begin + self.params.length(m)
                require(used <= end, f"bucket {i}: its bit string does not fit")
                unused += self.bits[used:end]
                stored = m > 1 and number(self.bits, begin, self.params.root_bits) == self.params.escape
                require(stored == (i in self.salts), f"bucket {i}: its root salt and the side table disagree")
        require("1" not in unused, "unused bits of the trees are not zero")
        if isinstance(self.params, chained.Params):
            needed = all(salt >= self.params.escape for salt in self.salts.values())
            require(needed, "a root salt that needs no side table")
