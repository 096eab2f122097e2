"""Do words and multipliers behave as if they were random? Nodes of random keys have as many solutions as theory says.

Words, parts and solutions are computed here once more, for many nodes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import exp, sqrt

import numpy as np
import pytest
import reference
from chains import Shape
from numpy.typing import NDArray

SAMPLES = 5000
Words = NDArray[np.uint32]


def words(lo: NDArray[np.uint64], salts: NDArray[np.uint64]) -> Words:
    """z of every key (columns) under the salt of its node (rows)."""
    t = lo.astype(np.uint32) ^ (salts * np.uint64(0x7F4A7C15)).astype(np.uint32)[:, None]
    u = (lo >> np.uint64(32)).astype(np.uint32) ^ (salts * np.uint64(0x9E3779B9)).astype(np.uint32)[:, None]
    z = (t | np.uint32(1)) * u
    return (z ^ z >> np.uint32(15)) * np.uint32(0x85EBCA6B)


def contributions(node: reference.chained.Node, z: Words, bits: int, key_class: int) -> Iterator[NDArray[np.uint64]]:
    """Keys of a class in every part, under each sub-seed: in lanes of 4 bits in a leaf, of 8 in a splitting."""
    lane = np.uint64(4 if node.leaf else 8)
    belongs = ((z & np.uint32(0xFFFF)) * np.uint32(node.classes) >> np.uint32(16)) == key_class
    for subseed in range(1 << bits):
        h = (z >> np.uint32(16)) * np.uint32(reference.chained.multiplier(subseed)) & np.uint32(0xFFFF)
        if len(node.sizes) == 2:
            part = (h >= -(-65536 * node.unit // node.m)).astype(np.uint64)
        elif node.leaf:
            part = (h * np.uint32(node.m) >> np.uint32(16)).astype(np.uint64)
        else:
            part = (h * np.uint32(-(-2048 * node.m // node.unit)) >> np.uint32(27)).astype(np.uint64)
        yield (belongs.astype(np.uint64) << part * lane).sum(axis=1)


def solution_counts(node: reference.chained.Node, z: Words, w: int) -> NDArray[np.int64]:
    """How many numbers of w bits solve the node of every row."""
    rotated, fields = node.cut(w)
    lane = 4 if node.leaf else 8
    wanted = np.uint64(sum(size << lane * i for i, size in enumerate(node.sizes)))
    classes = [list(contributions(node, z, bits, c)) for c, bits in enumerate(fields)]
    if rotated:
        ring = lane * node.m
        whole = np.uint64((1 << ring) - 1)
        classes[1] = [
            (v << np.uint64(lane * turn) | (v >> np.uint64(ring - lane * turn) if turn else v)) & whole
            for v in classes[1]
            for turn in range(1 << rotated)
        ]
    counts = np.zeros(len(z), np.int64)
    for combination in product(*classes[1:]):
        left = wanted - sum(combination, np.zeros(len(z), np.uint64))
        for lowest in classes[0]:
            counts += lowest == left
    return counts


def random_lo(m: int, seed: int, shared: str) -> NDArray[np.uint64]:
    lo = np.random.default_rng(seed).integers(0, 1 << 64, (SAMPLES, m), np.uint64)
    if shared == "upper half":
        return lo & np.uint64(0xFFFFFFFF) | lo[:, :1] & np.uint64(0xFFFFFFFF << 32)
    if shared == "lower half":
        return lo & np.uint64(0xFFFFFFFF << 32) | lo[:, :1] & np.uint64(0xFFFFFFFF)
    return lo


# leaf, fanouts, keys
NODES = [
    *((16, (2, 2, 2), m) for m in (2, 3, 5, 7, 8, 9, 10, 11, 12)),
    *((8, (4, 3, 4), m) for m in (9, 15, 16, 17, 24, 31, 32, 40, 64, 96, 200)),
    (5, (8, 4, 4), 40),
    (3, (6, 4, 4), 17),
    (10, (2, 2, 2), 160),
]


@pytest.mark.parametrize("shared", ["nothing", "upper half", "lower half"])
@pytest.mark.parametrize(("leaf", "fanouts", "m"), NODES)
def test_solutions_are_as_many_as_theory_says(leaf: int, fanouts: tuple[int, int, int], m: int, shared: str) -> None:
    params = Shape(leaf, fanouts, 200, 200, 4).params()
    node = params.node(m)
    w = node.width // 256
    expected = 2.0 ** (w - params.log2_inverse_p(m) / 2**32)
    seed = m * 100 + leaf
    salts = np.random.default_rng(seed + 1).integers(0, 1 << 32, SAMPLES, np.uint64)
    counts = solution_counts(node, words(random_lo(m, seed, shared), salts), w)
    deviation = counts.std() / sqrt(SAMPLES)
    print(f"{m} keys, {w} bits: expected {expected:.3f}, mean {counts.mean():.3f} ± {deviation:.3f}")
    print(f"variance {counts.var():.3f}, none {np.mean(counts == 0):.3f}, were it Poisson's {exp(-expected):.3f}")
    assert abs(counts.mean() - expected) <= 5 * deviation


def test_the_counts_here_are_those_of_the_definition() -> None:
    draw = np.random.default_rng(1)
    for leaf, m in ((8, 2), (8, 6), (9, 9), (4, 7), (4, 16), (3, 14)):
        params = Shape(leaf, (4, 3, 4), 200, 300, 4).params()
        node = params.node(m)
        w = node.width // 256
        z = draw.integers(0, 1 << 32, (20, m), np.uint64).astype(np.uint32)
        expected = [sum(1 for _ in node.solutions([int(x) for x in row], w)) for row in z]
        assert solution_counts(node, z, w).tolist() == expected


@pytest.mark.parametrize(("leaf", "m"), [(8, 7), (10, 10), (8, 20), (8, 32)])
def test_successive_root_salts_are_new_chances(leaf: int, m: int) -> None:
    """The same keys under salts 0 … 39: sums of solutions vary as if all were drawn anew."""
    node = Shape(leaf, (4, 3, 4), 200, 200, 4).params().node(m)
    sets, salts = 1000, np.arange(40, dtype=np.uint64)
    lo = np.random.default_rng(m).integers(0, 1 << 64, (sets, m), np.uint64)
    z = words(lo.repeat(len(salts), axis=0), np.tile(salts, sets))
    counts = solution_counts(node, z, node.width // 256).reshape(sets, len(salts))
    ratio = counts.sum(axis=1).var() / (len(salts) * counts.var())
    print(f"variance of sums, were they independent 1 ± {sqrt(2 / sets):.3f}: {ratio:.3f}")
    assert abs(ratio - 1) < 0.3
