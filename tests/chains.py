"""What the tests of chained seeds share: shapes to try, and both builders on buckets given by their hashes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference

from mphfstore import _build, _options
from mphfstore._build import build_hashed
from mphfstore._keys import KeyBatch
from mphfstore._native import lib
from mphfstore._options import Chain, Options

SETS = [name for name in ("baseline", "avx2", "avx512", "neon") if lib.mphf_isa_available(name.encode())]
ROOMS = (0, 26, 100, 300, 512)
FANOUTS = ((2, 2, 2), (4, 3, 4), (3, 5, 2), (8, 4, 4), (2, 8, 3), (5, 2, 8))


class Shape(NamedTuple):
    leaf: int
    fanouts: tuple[int, int, int]
    leaf_room: int
    split_room: int
    root_bits: int

    @classmethod
    def of_preset(cls, name: str) -> Shape:
        preset = _options.PRESETS[name]
        chain = preset.chain
        return cls(preset.leaf_size, chain.fanouts, chain.leaf_room, chain.split_room, chain.root_bits)

    @property
    def chain(self) -> Chain:
        return Chain(self.fanouts, self.leaf_room, self.split_room, self.root_bits)

    def params(self) -> reference.ChainedParams:
        return reference.ChainedParams(*self)

    def preset(self, bucket_size: int) -> _options.Preset:
        """To be put among PRESETS: the public functions take a chain in no other way."""
        return _options.Preset(self.leaf, bucket_size, self.chain, (5, 5))


class Built(NamedTuple):
    """A function, and what its builder says of it."""

    function: reference.Function
    sizes: tuple[int, ...]
    los: list[list[int]]

    def reader(self, shape: Shape) -> reference.FunctionReader:
        n, largest = sum(self.sizes), max(self.sizes, default=0)
        return reference.FunctionReader(shape.params(), self.function, n, len(self.sizes), largest)

    def check(self, shape: Shape) -> None:
        """Raise unless the reference finds all in order, and a bijection."""
        reader = self.reader(shape)
        reader.check()
        buckets = len(self.sizes)
        seen = [reader.index(first_hash(i, buckets), lo) for i, bucket_los in enumerate(self.los) for lo in bucket_los]
        assert sorted(i for i in seen if i is not None) == list(range(sum(self.sizes)))


def first_hash(bucket: int, buckets: int) -> int:
    """The smallest `hi` that falls in a bucket (FORMAT.md §2)."""
    return -(-(bucket << 64) // buckets)


def bucket_size_for(n: int, buckets: int) -> int:
    """b under which n keys have so many buckets."""
    for size in range(max(1, n // buckets - 2), min(65_535, n // buckets + n // buckets**2 + 2) + 1):
        if reference.writer.bucket_count(n, size) == buckets:
            return size
    raise ValueError(f"no bucket size makes {buckets} buckets of {n} keys")


def draw_los(sizes: Sequence[int], seed: int) -> list[list[int]]:
    draw = random.Random(seed)
    return [[draw.getrandbits(64) for _ in range(m)] for m in sizes]


def hashes_of(los: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Upper and lower words of keys in buckets of their own, given the lower ones."""
    count = len(los)
    hi = np.repeat(np.array([first_hash(i, count) for i in range(count)], np.uint64), [len(bucket) for bucket in los])
    return hi, np.array([lo for bucket in los for lo in bucket], np.uint64)


def hashed(hi: Any, lo: Any) -> KeyBatch:
    """Keys that are their own hashes, for devices."""
    return KeyBatch(np.stack([hi, lo], 1).reshape(-1).view(np.uint8), len(hi), width=16)


def native(shape: Shape, los: Sequence[Sequence[int]]) -> Built | None:
    """What C builds of the `lo` of every bucket's keys; None where it asks for another seed."""
    sizes = tuple(map(len, los))
    buckets, n = len(sizes), sum(sizes)
    options = Options("chained", shape.leaf, bucket_size_for(n, buckets) if n else 1, shape.chain, threads=1)
    hi, lo = hashes_of(los)
    try:
        index = build_hashed(hi, lo, 0, options)
    except _build._Unsolved:
        return None
    assert (index.buckets, index.largest_bucket) == (buckets if n else 0, max(sizes, default=0))
    function = reference.Function(index.trees.tobytes(), index.directory.tobytes())
    return Built(function, sizes, [list(bucket) for bucket in los])


def on_every_set(monkeypatch: pytest.MonkeyPatch, shape: Shape, los: Sequence[Sequence[int]]) -> Iterator[Built | None]:
    for name in SETS:
        monkeypatch.setenv("MPHFSTORE_ISA", name)
        yield native(shape, los)


def same_on_every_set(monkeypatch: pytest.MonkeyPatch, shape: Shape, los: Sequence[Sequence[int]]) -> Built:
    built = list(on_every_set(monkeypatch, shape, los))
    first = built[0]
    assert first is not None
    assert all(other == first for other in built), f"{shape}: instruction sets differ"
    return first
