"""Building a store, opening it, and every way to look something up."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, names_in
from hypothesis import given
from hypothesis import strategies as st

import mphfstore
from mphfstore import Store

Make = Callable[..., Store]
ABSENT = [f"absent {i}" for i in range(1000)]


def test_every_record_is_found_by_every_way_of_asking(store: Store) -> None:
    assert len(store) == len(RECORDS)
    assert [store[key] for key in RECORDS] == list(RECORDS.values())
    assert [store.get(key) for key in RECORDS] == list(RECORDS.values())
    assert store.get_many(RECORDS) == list(RECORDS.values())
    assert all(key in store for key in RECORDS)
    assert store.contains_many(RECORDS).all()


def test_absent_keys_are_absent_by_every_way_of_asking(store: Store) -> None:
    for key in ABSENT[:100]:
        assert key not in store
        assert store.get(key) is None
        assert store.get(key, b"default") == b"default"
        with pytest.raises(KeyError, match=key):
            store[key]
    assert not store.contains_many(ABSENT).any()
    assert (store.index_many(ABSENT) == -1).all()
    assert store.get_many(ABSENT, None) == [None] * len(ABSENT)


def test_indices_are_a_permutation(store: Store) -> None:
    indices = store.index_many(RECORDS)
    assert indices.dtype == np.int64
    assert sorted(indices) == list(range(len(RECORDS)))


def test_batches_answer_in_their_order(store: Store) -> None:
    keys = [key for pair in zip(RECORDS, ABSENT, strict=True) for key in pair]
    random.Random(5).shuffle(keys)
    assert store.get_many(keys, None) == [RECORDS.get(key) for key in keys]
    assert store.contains_many(keys).tolist() == [key in RECORDS for key in keys]
    assert (store.index_many(keys) >= 0).tolist() == [key in RECORDS for key in keys]


def test_get_many_without_a_default_names_the_first_absent_key(store: Store) -> None:
    with pytest.raises(KeyError) as caught:
        store.get_many(["key 1", "absent 7", "absent 3"])
    assert caught.value.args == ("absent 7",)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 64, 65])
def test_batches_of_every_size_around_a_group(store: Store, size: int) -> None:
    keys = list(RECORDS)[:size]
    assert store.get_many(keys) == [RECORDS[key] for key in keys]
    assert store.contains_many(keys).shape == store.index_many(keys).shape == (size,)


def test_batches_take_any_iterable(store: Store) -> None:
    keys = ["key 1", "key 2"]
    for batch in (tuple(keys), iter(keys), (key for key in keys), dict.fromkeys(keys), np.array(keys, object)):
        assert store.get_many(batch) == [RECORDS[key] for key in keys]


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=20), max_size=60), st.integers(0, 2**64 - 1))
def test_a_store_is_the_mapping_it_was_built_from(
    tmp_path_factory: pytest.TempPathFactory, records: dict[bytes, bytes], seed: int
) -> None:
    path = tmp_path_factory.mktemp("mapping") / "s"
    mphfstore.build(path, records, seed=seed, fingerprint_bits=0)
    with mphfstore.open(path) as opened:
        assert isinstance(opened, Store)
        assert {key: opened[key] for key in records} == records
        assert sorted(opened.index_many(records)) == list(range(len(records)))


def test_a_store_of_nothing_answers(make: Make) -> None:
    store = make({})
    assert len(store) == 0
    assert "x" not in store and store.get("x", 1) == 1
    assert store.get_many([]) == []
    assert store.get_many(["x"], None) == [None]
    assert store.contains_many(["x"]).tolist() == [False]
    assert store.index_many(["x", "y"]).tolist() == [-1, -1]
    assert store.info()["keys"] == store.info()["buckets"] == 0
    store.verify()


PAIRS = [("a", b"1"), ("b", b"22"), ("c", b"")]


@pytest.mark.parametrize(
    "items",
    [
        dict(PAIRS),
        PAIRS,
        iter(PAIRS),
        [list(pair) for pair in PAIRS],
        (["a", "b", "c"], [b"1", b"22", b""]),
        (np.array(["a", "b", "c"]), np.array([b"1", b"22", b""])),
        (np.array([b"a", b"b", b"c"]), np.array([b"1", b"22", b""], object)),
    ],
    ids=["mapping", "list of pairs", "iterator", "list of lists", "columns", "arrays", "arrays of bytes and objects"],
)
def test_items_come_in_many_shapes(tmp_path: Path, items: Any) -> None:
    mphfstore.build(tmp_path / "s", items)
    opened = mphfstore.open(tmp_path / "s")
    assert [opened[key] for key, _ in PAIRS] == [value for _, value in PAIRS]


@pytest.mark.parametrize("items", [[("a", b"1", 2)], [("a",)], [5], ["abc"], {"a", "b"}])
def test_what_is_no_pair_is_refused(tmp_path: Path, items: Any) -> None:
    with pytest.raises(TypeError, match="record 0 is not a"):
        mphfstore.build(tmp_path / "s", items)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("items", [["ab"], [b"ab"]])
def test_a_string_of_two_characters_is_no_pair(tmp_path: Path, items: Any) -> None:
    with pytest.raises(TypeError, match="record 0 is not a"):
        mphfstore.build(tmp_path / "s", items, values="U1")


def test_the_record_that_is_no_pair_is_named_in_any_chunk(tmp_path: Path) -> None:
    pairs: list[Any] = [(f"{i}", b"") for i in range(70_000)]
    pairs[66_000] = ("lonely",)
    with pytest.raises(TypeError, match="record 66000 "):
        mphfstore.build(tmp_path / "s", pairs)


@pytest.mark.parametrize("keys", [["a", "b"], {"a": 1, "b": 2}, {"a", "b"}, np.array(["a", "b"]), iter(["a", "b"])])
def test_a_store_without_values_knows_its_keys(make: Make, keys: Any) -> None:
    store = make(keys, values=None)
    assert len(store) == 2 and "a" in store and "b" in store and "c" not in store
    assert sorted(store.index_many(["a", "b"])) == [0, 1]
    with pytest.raises(TypeError, match="no values"):
        store["a"]
    with pytest.raises(TypeError, match="no values"):
        store.get_many(["a"])
    with pytest.raises(KeyError):
        store["c"]


def test_builder_takes_single_records_and_batches_in_turn(tmp_path: Path) -> None:
    with mphfstore.Builder(tmp_path / "s") as builder:
        builder.add("a", b"1")
        builder.add_many(["b", "c"], [b"22", b""])
        builder.add_many([], [])
        builder.add(b"d", bytearray(b"4"))
        builder.add_many(np.array(["e", "ff"]), np.array([b"5", b"66"]))
        builder.add_many(iter([memoryview(b"g")]), iter([memoryview(b"7")]))
    opened = mphfstore.open(tmp_path / "s")
    assert opened.get_many(["a", "b", "c", "d", "e", "ff", "g"]) == [b"1", b"22", b"", b"4", b"5", b"66", b"7"]


def test_more_records_than_a_chunk_one_by_one(tmp_path: Path) -> None:
    count = (1 << 16) + 10
    with mphfstore.Builder(tmp_path / "s", values="<u4", preset="quick") as builder:
        for i in range(count):
            builder.add(b"%d" % i, i)
    opened = mphfstore.open(tmp_path / "s")
    assert opened.get_many([b"%d" % i for i in range(count)]).tolist() == list(range(count))


def test_a_builder_refuses_records_outside_its_block(tmp_path: Path) -> None:
    builder = mphfstore.Builder(tmp_path / "s")
    with pytest.raises(ValueError, match="block"):
        builder.add("a", b"1")
    with builder:
        builder.add("a", b"1")
    with pytest.raises(ValueError, match="block"):
        builder.add("b", b"1")
    with pytest.raises(ValueError, match="block"):
        builder.add_many(["b"], [b"1"])
    assert names_in(tmp_path) == ["s"]


def test_a_builder_serves_once(tmp_path: Path) -> None:
    builder = mphfstore.Builder(tmp_path / "s")
    with builder:
        builder.add("a", b"1")
    with pytest.raises(ValueError), builder:
        builder.add("b", b"2")
    assert mphfstore.open(tmp_path / "s").get("a") == b"1"


@pytest.mark.parametrize(
    "options",
    [
        {"preset": "enormous"},
        {"method": "magic"},
        {"leaf_size": 0},
        {"leaf_size": 1},
        {"leaf_size": 25},
        {"bucket_size": 0},
        {"bucket_size": 65_536},
        {"fingerprint_bits": -1},
        {"fingerprint_bits": 33},
        {"seed": -1},
        {"seed": 1 << 64},
        {"threads": 0},
        {"on_duplicate": "shrug"},
        {"keys": "stored?"},
        {"fingerprint_bits": 8, "false_positive_rate": 0.1},
        {"false_positive_rate": 0.0},
        {"false_positive_rate": -1.0},
        {"false_positive_rate": 1.5},
        {"false_positive_rate": float("nan")},
        {"compression": "gzip"},
        {"dedupe": True, "values": "<u4"},
        {"compression": "zstd", "values": None},
    ],
    ids=str,
)
def test_options_out_of_bounds_are_refused_before_anything_is_written(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        mphfstore.build(tmp_path / "s", {"a": b"1"}, **options)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("preset", mphfstore.PRESETS)
@pytest.mark.parametrize("bits", [0, 1, 7, 8, 13, 16, 31, 32])
def test_presets_and_fingerprints_of_every_kind_of_width(make: Make, preset: str, bits: int) -> None:
    keys = np.arange(300) ** 3
    store = make((keys, keys), values="<i8", preset=preset, fingerprint_bits=bits, seed=3)
    assert (store.get_many(keys) == keys).all() and [store[int(key)] for key in keys] == keys.tolist()
    found = store.contains_many(-1 - np.arange(20_000)).mean()
    assert abs(found - 2.0**-bits) < 0.02
    assert store.info()["false_positive_rate"] == 2.0**-bits
