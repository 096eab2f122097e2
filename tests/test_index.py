"""The function itself: a bijection at every size, the same bytes on every instruction set and as the reference's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import ceil, log, log1p, log2, sqrt

import numpy as np
import pytest
import reference

from mphfstore import MPHF, Filter
from mphfstore._build import build_hashed
from mphfstore._format import Kind
from mphfstore._handle import write
from mphfstore._keys import IntegerKeys
from mphfstore._native import ffi, lib
from mphfstore._options import Options
from mphfstore._publish import Memory
from mphfstore._source import aligned

SETS = [name for name in ("baseline", "avx2", "avx512", "neon") if lib.mphf_isa_available(name.encode())]
METHODS = ("brute", "rotation")
ALL_METHODS = (*METHODS, "chained")
SHAPES = ((8, 100), (5, 5), (11, 7), (2, 1), (10, 2000))


@pytest.fixture(params=SETS)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MPHFSTORE_ISA", request.param)
    return str(request.param)


def some_keys(n: int, seed: int = 0) -> list[bytes]:
    return [b"%d:%d" % (seed, i) for i in range(n)]


def params_of(method: str, leaf: int) -> reference.function.Params:
    """Of the public functions, given method and leaf size."""
    if method != "chained":
        return reference.Params(method, leaf)
    chain = Options.of(method=method, leaf_size=leaf).chain
    return reference.ChainedParams(leaf, chain.fanouts, chain.leaf_room, chain.split_room, chain.root_bits)


def on_every_set(monkeypatch: pytest.MonkeyPatch, keys: object, **options: object) -> Iterator[MPHF]:
    for name in SETS:
        monkeypatch.setenv("MPHFSTORE_ISA", name)
        yield MPHF.build(keys, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize(("leaf", "bucket"), SHAPES)
def test_every_size_to_300(method: str, leaf: int, bucket: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(301):
        keys = some_keys(n, n)
        built = on_every_set(monkeypatch, keys, method=method, leaf_size=leaf, bucket_size=bucket, seed=n, threads=1)
        files = {function.to_bytes() for function in built}
        assert len(files) == 1, f"instruction sets differ at n = {n}"
        reader = reference.Reader(files.pop())
        function = MPHF.from_bytes(reader.data)
        indices = function.index_many(keys).tolist() if n else []
        assert sorted(indices) == list(range(n)), f"n = {n}"
        assert indices == [reader.index(key) for key in keys] == [function.index(key) for key in keys], f"n = {n}"


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize(
    ("n", "leaf", "bucket"),
    [(n, *shape) for n in (10_000, 1_000_000) for shape in ((8, 100), (5, 5), (11, 7))] + [(30_000, 14, 50)],
)
def test_large_sets(method: str, n: int, leaf: int, bucket: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.random.default_rng(n).integers(0, 1 << 63, n, np.uint64)
    expected = None
    for function in on_every_set(monkeypatch, keys, method=method, leaf_size=leaf, bucket_size=bucket, seed=1):
        indices = function.index_many(keys)
        assert np.array_equal(np.sort(indices), np.arange(n))
        expected = expected or function.to_bytes()
        assert function.to_bytes() == expected


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize(
    ("n", "leaf", "bucket"),
    [
        *((0, 5, 5), (1, 5, 5), (2, 2, 1), (700, 2, 10), (700, 3, 3), (2000, 4, 100), (2000, 6, 30), (1500, 7, 2000)),
        *((2000, 8, 100), (600, 9, 50), (400, 10, 40), (5000, 5, 65_535)),
    ],
)
def test_files_equal_the_references(method: str, n: int, leaf: int, bucket: int) -> None:
    keys = some_keys(n)
    schema = {"key_type": "bytes", "keys": "fingerprint", "value_width": None, "values": None}
    expected = reference.build(
        [(key, None) for key in keys],
        params=params_of(method, leaf),
        bucket_size=bucket,
        seed=11,
        fingerprint_bits=13,
        kind=2,
        schema=schema,
    )
    built = Filter.build(keys, method=method, leaf_size=leaf, bucket_size=bucket, seed=11, fingerprint_bits=13)
    assert built.to_bytes() == expected


def bit_string(los: list[int], method: str, leaf: int) -> str:
    """The bit string of one bucket, built natively from given lower hash words."""
    lo = np.array(los, np.uint64)
    options = Options.of(method=method, leaf_size=leaf, bucket_size=65_535, threads=1)
    index = build_hashed(np.zeros_like(lo), lo, 0, options)
    return reference.unpack(index.trees[1:].tobytes())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("m", [2, 3, 5, 8, 9, 11, 12, 13, 40, 130, 700])
@pytest.mark.parametrize("distance", [1, 3, 40, 300, 5000])
def test_numbers_around_a_carry_into_the_upper_half(method: str, m: int, distance: int, isa: str) -> None:
    """Words whose lower half overflows within the first numbers tried: there the search leaves its vectors."""
    leaf, draw = 9 if m > 13 else m, random.Random(m * distance)
    gamma = 0x9E3779B97F4A7C15  # what the root adds: it must overflow after that
    los = [(draw.getrandbits(64) | 0xFFFFFFFF) - draw.randrange(distance) - gamma & (1 << 64) - 1 for _ in range(m)]
    expected = reference.build_bucket(reference.Params(method, leaf), los)
    found = bit_string(los, method, leaf)
    assert found[: len(expected)] == expected
    assert "1" not in found[len(expected) :]


@pytest.mark.parametrize(
    ("method", "leaf"),
    [(method, leaf) for method in ALL_METHODS for leaf in range(2, 17 if method == "chained" else 25)],
)
def test_every_leaf_size(method: str, leaf: int, isa: str) -> None:
    keys = some_keys(400, leaf)
    # full leaves as long as the baseline finds them in reasonable time; then the wide fanouts over small leaves only
    bucket = 60 if leaf <= 13 else 6
    function = MPHF.build(keys, method=method, leaf_size=leaf, bucket_size=bucket, seed=leaf)
    reader = reference.Reader(function.to_bytes())
    indices = [function.index(key) for key in keys]
    assert sorted(indices) == list(range(400))
    assert indices == [reader.index(key) for key in keys]


@pytest.mark.parametrize("leaf", range(2, 25))
def test_golomb_rice_parameters_agree_with_floating_point(leaf: int) -> None:
    params = reference.Params("brute", leaf)
    phi = (sqrt(5) + 1) / 2
    for m in [*range(2, 400), 1000, 3000]:
        p = 2.0 ** -(params.log2_inverse_p(m) / 2**32)
        exact = log2(log(phi) / -log1p(-p)) if p < 1 else -1.0
        if abs(exact - round(exact)) > 1e-6:
            assert params.tau(m) == max(0, ceil(exact)), m


@pytest.mark.parametrize("method", ALL_METHODS)
def test_an_absent_key_has_an_index_below_n(method: str) -> None:
    for n in (1, 2, 7, 300):
        function = MPHF.build(some_keys(n), method=method, leaf_size=5, bucket_size=1, seed=n)  # many empty buckets
        indices = function.index_many(some_keys(3000, seed=99))
        assert 0 <= indices.min() <= indices.max() < n
        assert all(0 <= function.index(key) < n for key in some_keys(300, seed=98))


def test_a_function_of_no_keys_has_no_index_to_give() -> None:
    function = MPHF.build([])
    assert len(function) == 0
    assert function.index_many([]).tolist() == []
    with pytest.raises(ValueError, match="no keys"):
        function.index(b"x")
    with pytest.raises(ValueError, match="no keys"):
        function.index_many([b"x"])


@pytest.mark.parametrize("pattern", ["sequence", "powers", "floats", "zeros"])
def test_regular_integers_are_no_harder_than_random_ones(pattern: str) -> None:
    n = 50_000
    keys = {
        "sequence": np.arange(n, dtype=np.uint64),
        "powers": np.arange(n, dtype=np.uint64) << np.uint64(40),
        "floats": np.arange(n, dtype=np.float64).view(np.uint64),
        "zeros": np.arange(n, dtype=np.uint64) * np.uint64(1 << 16),
    }[pattern]
    function = MPHF.build(keys, seed=1)
    assert np.array_equal(np.sort(function.index_many(keys)), np.arange(n))
    assert function.bits_per_key < 1.85


@pytest.mark.parametrize("bits", [4, 8, 12, 16])
def test_false_positive_rate(bits: int) -> None:
    keys = np.arange(20_000, dtype=np.uint64)
    absent = np.arange(1 << 32, (1 << 32) + 1_000_000, dtype=np.uint64)
    hits = int(Filter.build(keys, fingerprint_bits=bits, seed=3).contains_many(absent).sum())
    rate = 2.0**-bits
    assert abs(hits - rate * len(absent)) <= 5 * sqrt(len(absent) * rate * (1 - rate))


def test_fingerprints_of_every_width_agree_with_the_reference() -> None:
    keys, others = some_keys(500), some_keys(2000, seed=5)
    for bits in range(33):
        built = Filter.build(keys, fingerprint_bits=bits, seed=bits)
        reader = reference.Reader(built.to_bytes())
        assert built.contains_many(keys).all()
        assert built.contains_many(others).tolist() == [reader.contains(key) for key in others]


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 8192, 8193, 30_000])
@pytest.mark.parametrize("spread", [0, 1, 7, 1000, 1 << 40])
def test_elias_fano_equals_the_reference(count: int, spread: int) -> None:
    draw = random.Random(count * 31 + spread)
    values = sorted(draw.randrange(spread + 1) * (draw.random() < 0.3) for _ in range(count))
    array = np.array(values, np.uint64)
    words = np.empty(lib.elias_fano_words(count, values[-1]), np.uint64)
    lib.elias_fano_build(ffi.from_buffer("uint64_t[]", array), count, ffi.from_buffer("uint64_t[]", words))
    assert words.tobytes() == reference.elias_fano_encode(values)


@pytest.mark.parametrize("method", ALL_METHODS)
def test_hash_words_of_zeros_and_of_ones_are_words_like_others(method: str, isa: str) -> None:
    draw = np.random.default_rng(5)
    hi, lo = (draw.integers(0, 1 << 64, 500, np.uint64) for _ in range(2))
    ones = np.uint64((1 << 64) - 1)
    hi[:4], lo[:4] = [0, 0, ones, ones], [0, ones, 0, ones]
    memory = Memory()
    options = Options.of(method=method, leaf_size=8, bucket_size=40)
    write(memory, build_hashed(hi, lo, 0, options), Kind.MPHF, IntegerKeys("<u8"))
    function = MPHF(aligned(memory.data))
    found = np.empty(500, np.int64)
    words = ffi.from_buffer("uint64_t[]", hi), ffi.from_buffer("uint64_t[]", lo), 500
    assert lib.mphf_bench_batch(function._current().reader, *words, ffi.from_buffer("int64_t[]", found)) == 0
    assert np.array_equal(np.sort(found), np.arange(500))
    assert lib.mphf_bench_single(function._current().reader, *words, 0) == found.sum()


def test_an_instruction_set_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPHFSTORE_ISA", "mmx")
    with pytest.raises(ValueError, match="MPHFSTORE_ISA=mmx"):
        MPHF.build([b"a"])


def test_threads_change_no_byte() -> None:
    keys = np.arange(100_000, dtype=np.uint64)
    one, four = (MPHF.build(keys, seed=5, threads=threads).to_bytes() for threads in (1, 4))
    assert one == four


def test_integer_keys_agree_with_their_bytes() -> None:
    values = [-5, 0, 7, 2**40]
    kind = IntegerKeys("<i8")
    function = MPHF.build(values, key_dtype="i8", seed=1)
    reader = reference.Reader(function.to_bytes())
    assert [function.index(value) for value in values] == [reader.index(kind.one(value)) for value in values]
