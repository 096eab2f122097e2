"""The directory of chained seeds: entries of every width, the line that bit strings start on, root salts beside it;
buckets of any size, and searches that have to end."""

from __future__ import annotations

import random

import numpy as np
import pytest
import reference
from chains import Built, Shape, draw_los, first_hash, native, same_on_every_set

from mphfstore import _build, _options

BALANCED = Shape.of_preset("balanced")
DIRECTORY = 3


def whole_mean(sizes: list[int]) -> list[int]:
    """These sizes, some a little larger, so that their mean is a whole number; neither the smallest nor the largest."""
    least, most, missing = min(sizes), max(sizes), -sum(sizes) % len(sizes)
    between = [i for i, size in enumerate(sizes) if least < size < most - 1]
    for i in between[:missing]:
        sizes[i] += 1
    return sizes


def line_of(built: Built) -> tuple[int, int, int, int, int]:
    """A, D, kmin, bytes of an entry, salts."""
    fields = reference.directory.CHAIN_HEAD.unpack_from(built.function.directory)
    return fields[:5]


draw = random.Random(77)
SIZES = {
    "Poisson": (1, whole_mean([int(x) for x in np.random.default_rng(4).poisson(20, 700)])),
    "one": (1, [40]),
    "equal": (1, [33] * 200),
    "two sizes": (1, [10, 12] * 90),
    "mostly empty": (1, whole_mean([draw.choice((0, 0, 1, 1, 2, 3, 9)) for _ in range(300)])),
    "255 apart": (1, whole_mean([3, 258, *range(4, 200)])),
    "256 apart": (2, whole_mean([3, 259, *range(4, 200)])),
    "skewed": (2, whole_mean([int(x) for x in np.random.default_rng(5).pareto(1.1, 300) * 5])),
    "65 535 keys in a line": (2, [40_000, 25_535, *([0] * 54)]),
    "65 536 keys in a line": (4, [40_000, 25_536, *([0] * 54)]),
    "65 536 keys in two lines": (2, [40_000, *([0] * 27), 25_536, *([0] * 27)]),
    "65 536 keys in a bucket": (4, [65_536, 0, 0, 0]),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_directory_is_the_references(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, sizes = SIZES[name]
    built = same_on_every_set(monkeypatch, BALANCED, draw_los(sizes, len(name)))
    params, salts = BALANCED.params(), built.reader(BALANCED).salts
    line = reference.directory.line_over(params, sizes)
    assert line_of(built)[:4] == (*line, min(sizes), expected)
    assert built.function.directory == reference.directory.encode_chained(line, sizes, salts)
    reader = built.reader(BALANCED)
    reader.check()


def test_a_function_of_no_keys() -> None:
    built = native(BALANCED, [])
    assert built is not None
    assert built.function == reference.build_function(BALANCED.params(), [])
    assert built.function.directory == bytes(24) + b"\1" + bytes(39)
    assert built.function.trees == bytes(16)


def native_indices(shape: Shape, built: Built, hi: np.ndarray, lo: np.ndarray) -> np.ndarray:
    """Indices that the native reader finds for ready hashes."""
    ffi, lib = _build.ffi, _build.lib
    status = ffi.new("int *")
    parameters = _options.Options("chained", shape.leaf, 1, shape.chain).parameters()
    trees, directory = built.function
    reader = lib.mphf_reader_new(
        _build.isa(), parameters, sum(built.sizes), 0, len(built.sizes), max(built.sizes), ffi.from_buffer(trees),
        len(trees), ffi.from_buffer(directory), len(directory), ffi.NULL, 0, 0, status,
    )  # fmt: skip
    assert status[0] == lib.STATUS_OK
    out = np.empty(len(hi), np.int64)
    lib.mphf_bench_batch(reader, _build._words(hi), _build._words(lo), len(hi), ffi.from_buffer("int64_t[]", out))
    lib.mphf_reader_free(reader)
    return out


@pytest.mark.parametrize("preset", ["fast", "balanced", "compact", "smallest"])
@pytest.mark.parametrize("m", [5_000, 50_000, 65_536])
def test_a_skewed_hash_makes_large_buckets(preset: str, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, sizes = Shape.of_preset(preset), [m, *([0] * 31), *([2] * 8)]
    if m == 65_536 and preset == "smallest":
        monkeypatch.setattr("chains.SETS", ["baseline"])  # the slowest of all
    built = same_on_every_set(monkeypatch, shape, draw_los(sizes, m))
    monkeypatch.undo()
    reader = built.reader(shape)
    reader.check()
    hi = np.repeat(np.array([first_hash(i, len(sizes)) for i in range(len(sizes))], np.uint64), sizes)
    lo = np.array([x for los in built.los for x in los], np.uint64)
    found = native_indices(shape, built, hi, lo)
    assert np.array_equal(np.sort(found), np.arange(sum(sizes)))
    some = random.Random(m).sample(range(len(lo)), 500)
    assert [reader.index(int(hi[i]), int(lo[i])) for i in some] == found[some].tolist()
