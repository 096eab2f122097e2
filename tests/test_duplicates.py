"""Equal keys, and distinct keys whose hashes are equal."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mphfstore as ms
from mphfstore import _build, _options


def file_of(path: Path, pairs: list[tuple[str, bytes]], **options: object) -> bytes:
    ms.build(path / "s", pairs, seed=4, **options)
    return (path / "s").read_bytes()


@pytest.mark.parametrize("n", [2, 20, 3000])
def test_the_key_and_its_first_two_records_are_named(n: int, tmp_path: Path) -> None:
    pairs = [(f"k{i}", b"") for i in range(n)]
    pairs.insert(n - 1, ("k0", b""))
    pairs.append(("k1", b""))
    with pytest.raises(ms.DuplicateKeyError, match="b'k0'") as caught:
        ms.build(tmp_path / "s", pairs)
    assert (caught.value.key, caught.value.positions) == (b"k0", (0, n - 1))
    assert list(tmp_path.iterdir()) == []


def test_an_integer_key_is_named_as_an_integer() -> None:
    with pytest.raises(ms.DuplicateKeyError, match="duplicate key -7"):
        ms.MPHF.build([3, -7, 5, -7], key_dtype="i8")


@pytest.mark.parametrize("copies", [2, 300, 10_000, 100_000])
@pytest.mark.parametrize("method", ["brute", "rotation"])
def test_any_number_of_copies_of_one_key(copies: int, method: str) -> None:
    keys = [b"same"] * copies + [b"k%d" % i for i in range(1000)]
    with pytest.raises(ms.DuplicateKeyError, match="same"):
        ms.MPHF.build(keys, method=method)
    assert len(ms.Filter.build(keys, method=method)) == 1001


@pytest.mark.parametrize("leaf", [13, 20, 24])
def test_long_leaves_look_for_equal_keys_before_they_search(leaf: int) -> None:
    keys = [b"k%d" % (i % (leaf - 1)) for i in range(leaf)]
    with pytest.raises(ms.DuplicateKeyError, match="k0"):
        ms.MPHF.build(keys, method="brute", leaf_size=leaf, bucket_size=1000)


@pytest.mark.parametrize("policy", ["first", "last"])
def test_policies_keep_one_record_as_if_only_it_had_been_given(policy: str, tmp_path: Path) -> None:
    draw = random.Random(1)
    pairs = [(f"k{draw.randrange(5000)}", b"%d" % i) for i in range(20_000)]
    kept = dict(pairs) if policy == "last" else dict(reversed(pairs))
    expected = sorted(kept.items(), key=lambda pair: pairs.index(pair))
    assert file_of(tmp_path, pairs, on_duplicate=policy) == file_of(tmp_path, expected)


def colliding(monkeypatch: pytest.MonkeyPatch, rounds: int) -> list[int]:
    """The first `rounds` seeds hash records 0 and 1 alike, different keys. Returns the seeds as they are tried."""
    genuine, tried = _build.hash_batch, []

    def forced(keys: object, seed: int) -> object:
        hi, lo = genuine(keys, seed)  # type: ignore[arg-type]
        tried.append(seed)
        if len(tried) <= rounds:
            hi[1], lo[1] = hi[0], lo[0]
        return hi, lo

    monkeypatch.setattr(_build, "hash_batch", forced)
    return tried


@pytest.mark.parametrize("rounds", [1, 8])
def test_equal_hashes_of_distinct_keys_end_in_a_correct_file_under_another_seed(
    rounds: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried = colliding(monkeypatch, rounds)
    pairs = {f"k{i}": b"%d" % i for i in range(2000)}
    ms.build(tmp_path / "s", pairs, seed=(1 << 64) - 1)
    assert tried == [(1 << 64) - 1, *range(rounds)]
    store = ms.open(tmp_path / "s")
    assert store.info()["seed"] == rounds - 1
    assert store.get_many(list(pairs)) == list(pairs.values())


def test_nine_seeds_are_enough_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = colliding(monkeypatch, 100)
    with pytest.raises(ms.BuildError, match="9 seeds from 5 on"):
        ms.MPHF.build([b"%d" % i for i in range(50)], seed=5)
    assert len(tried) == 9


@pytest.mark.parametrize("policy", ["first", "last"])
def test_duplicates_and_a_collision_at_once(policy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    colliding(monkeypatch, 1)
    ms.build(tmp_path / "s", [("a", b"1"), ("b", b"2"), ("a", b"3"), ("c", b"4")], on_duplicate=policy, seed=9)
    store = ms.open(tmp_path / "s")
    assert store.get_many(["a", "b", "c"]) == [b"1" if policy == "first" else b"3", b"2", b"4"]


@pytest.mark.parametrize("largest", [500, 5000])
def test_a_skewed_hash_makes_large_buckets(largest: int) -> None:
    hi, lo = _build.hash_batch(_build.KeyBatch(np.arange(20_000, dtype="<u8").view(np.uint8), 20_000, width=8), 1)
    hi[:largest] = 0
    options = _options.Options.of(method="rotation", leaf_size=5, bucket_size=5, threads=2)
    index = _build.build_hashed(hi, lo, 1, options)
    assert index.largest_bucket >= largest
    assert np.array_equal(np.sort(index.records), np.arange(20_000))


def test_a_hash_that_spreads_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = _build.hash_batch

    def flat(keys: object, seed: int) -> object:
        hi, lo = genuine(keys, seed)  # type: ignore[arg-type]
        hi[:] = 0
        return hi, lo

    monkeypatch.setattr(_build, "hash_batch", flat)
    with pytest.raises(ms.BuildError):
        ms.MPHF.build(np.arange(70_000))


@given(st.lists(st.sampled_from([b"", b"\0", b"a", b"b", b"ab", b"\xff", b"c" * 300]), min_size=2, max_size=20))
def test_any_repetitions_are_reported_and_resolved_as_a_dict_would(
    tmp_path_factory: pytest.TempPathFactory, keys: list[bytes]
) -> None:
    folder, pairs = tmp_path_factory.mktemp("repeated"), [(key, b"%d" % i) for i, key in enumerate(keys)]
    repeated = next((i for i, key in enumerate(keys) if key in keys[:i]), None)
    if repeated is not None:
        with pytest.raises(ms.DuplicateKeyError) as caught:
            ms.build(folder / "s", pairs)
        assert (caught.value.key, caught.value.positions) == (keys[repeated], (keys.index(keys[repeated]), repeated))
    for policy, kept in (("first", dict(reversed(pairs))), ("last", dict(pairs))):
        ms.build(folder / "s", pairs, on_duplicate=policy, seed=1)
        store = ms.open(folder / "s")
        assert len(store) == len(kept) and store.get_many(list(kept)) == list(kept.values())
