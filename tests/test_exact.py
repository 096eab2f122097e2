"""Stores that have their keys: never a wrong answer, a Mapping, keys back as they were given."""

from __future__ import annotations

import collections.abc
import gc
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from paths import FAST, NUMBERS, PLAIN, QUESTIONS, TEXTS, VALUES, WORDS, outcome

import mphfstore
from mphfstore import ExactStore, Store, _build

Make = Callable[..., Store]
RECORDS = {f"key {i}": b"value %d" % i * (i % 5) for i in range(3000)}


@pytest.fixture
def exact(make: Make) -> Make:
    return lambda items, **options: make(items, **{"keys": "exact", "seed": 1, **options})


@pytest.mark.parametrize("bits", [0, 1, 8, 13])
def test_no_absent_key_passes(exact: Make, bits: int) -> None:
    store = exact(RECORDS, fingerprint_bits=bits)
    absent = [f"absent {i}" for i in range(30_000)]
    assert not store.contains_many(absent).any()
    assert (store.index_many(absent) == -1).all()
    assert not any(key in store for key in absent)
    assert store.get_many([*absent[:50], "key 7"], None) == [*[None] * 50, RECORDS["key 7"]]
    assert store.get_many(RECORDS) == [store[key] for key in RECORDS] == list(RECORDS.values())
    assert store.info()["false_positive_rate"] == 0.0 and store.info()["key_storage"] == "exact"


def test_keys_with_the_same_hash_as_a_stored_one_are_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored key decides, not the fingerprint: here the file is one of a key that hashes to what another does."""
    genuine = _build.hash_batch
    monkeypatch.setattr(
        _build, "hash_batch", lambda keys, seed: genuine(mphfstore._keys.BytesKeys().batch(["b"]), seed)
    )
    mphfstore.build(tmp_path / "s", {"a": b"1"}, keys="exact", fingerprint_bits=32, seed=5)
    with mphfstore.open(tmp_path / "s") as store:
        assert "b" not in store and store.get("b") is None and not store.contains_many(["b"]).any()


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "<i4", ">u4", "u8", "i8"])
def test_integers(exact: Make, dtype: str) -> None:
    bounds = np.iinfo(dtype)
    keys = np.array(sorted({bounds.min, bounds.max, 0, 1, 5, 100, bounds.max // 3}), dtype)
    store = exact((keys, np.arange(len(keys))), values="<i8")
    own = store.keys_array()
    assert own.dtype == keys.dtype.newbyteorder("<") and not own.flags.writeable
    assert own.tolist() == list(store) == list(store.keys())
    assert sorted(store) == sorted(keys.tolist()) and all(type(key) is int for key in store)
    assert (store.index_many(own) == np.arange(len(keys))).all()
    assert not store.contains_many([key for key in range(2, 100) if key not in keys.tolist()]).any()
    assert store.info()["key_width"] == keys.dtype.itemsize
    assert dict(store) == dict(zip(keys.tolist(), range(len(keys)), strict=True))


WIDTHS: dict[str, list[Any]] = {
    "one key": ["a"],
    "one empty key": [""],
    "an empty key": ["", "a", "bc"],
    "long keys": ["x" * 1_000_000, "y" * 1_000_000 + "z", "", "x" * 999_999],
    "NUL": ["\0", "\0\0", "", "a\0", "a", "a\0b"],
    "one width": ["abc", "xyz", "äz"],
    "not UTF-8": [b"\xff", b"\xfe\x00", "ü".encode("latin-1"), b"\x80" * 300],
}


@pytest.mark.parametrize("keys", WIDTHS.values(), ids=WIDTHS)
def test_keys_of_every_kind(exact: Make, keys: list[Any]) -> None:
    store = exact({key: b"%d" % i for i, key in enumerate(keys)})
    assert dict(store.items()) == {key: b"%d" % i for i, key in enumerate(keys)}
    widths = {len(key.encode() if isinstance(key, str) else key) for key in keys}
    assert store.info()["key_width"] == (widths.pop() if len(widths) == 1 else None)
    for key in keys:
        for absent in (key + key[:1] if key else "q", key[:-1] if len(key) > 2 else "qq"):
            if absent not in keys:
                assert absent not in store and not store.contains_many([absent]).any()
    store.verify()


def test_no_keys(exact: Make) -> None:
    for items in {}, (np.empty(0, "u4"), []):
        store = exact(items)
        assert list(store) == list(store.items()) == list(store.values()) == [] and store == {}
        assert "a" not in store if store.info()["key_type"] == "bytes" else 1 not in store
    assert store.keys_array().dtype == np.dtype("u4")


def test_text_comes_back_as_text_and_bytes_as_bytes(exact: Make) -> None:
    assert sorted(exact({"ä": b"", "b": b""})) == ["b", "ä"]
    assert sorted(exact({b"a": b"", b"b": b""})) == [b"a", b"b"]
    assert sorted(exact({"a": b"", b"b": b""})) == [b"a", b"b"]  # both kinds: bytes
    assert sorted(exact((np.array(["a", "bä"]), [b"", b""]))) == ["a", "bä"]
    assert sorted(exact((np.array([b"a", b"b\0"]), [b"", b""]))) == [b"a", b"b"]  # numpy's rule: no NULs at the end
    assert sorted(exact((np.array(["a", "b"], object), [b"", b""]))) == ["a", "b"]
    store = exact({"a": b"1"})
    assert store["a"] == store[b"a"] == store.get(bytearray(b"a")) == b"1" and store.info()["key_type"] == "str"


def test_a_builder_remembers_whether_all_keys_were_text(tmp_path: Path) -> None:
    for last, expected in (("c", ["a", "b", "c"]), (b"c", [b"a", b"b", b"c"])):
        with mphfstore.Builder(tmp_path / "s", keys="exact") as builder:
            builder.add("a", b"")
            builder.add_many([], [])
            builder.add_many(iter(["b"]), iter([b""]))
            builder.add(last, b"")
        assert sorted(mphfstore.open(tmp_path / "s")) == expected


def test_a_refused_batch_leaves_no_trace(tmp_path: Path) -> None:
    with mphfstore.Builder(tmp_path / "s", keys="exact") as builder:
        builder.add("a", b"")
        with pytest.raises(ValueError):
            builder.add_many([b"x"], [])
        with pytest.raises(TypeError):
            builder.add(b"x", 5)
    assert list(mphfstore.open(tmp_path / "s")) == ["a"]


def test_it_is_a_mapping(exact: Make) -> None:
    store = exact(RECORDS)
    assert isinstance(store, ExactStore) and isinstance(store, collections.abc.Mapping)
    other = dict(RECORDS)
    assert store == other and other == store and (store != other) is False
    assert store != {**RECORDS, "key 5": b"other"} and store != {**RECORDS, "one more": b""} and store != 5
    assert store != {("x" if key == "key 5" else key): value for key, value in RECORDS.items()}
    assert dict(store) == {**store} == RECORDS
    assert len(store.keys()) == len(store.items()) == len(store.values()) == len(RECORDS)
    assert store.keys() == RECORDS.keys() and store.items() == RECORDS.items()
    keys = store.keys()
    assert "key 5" in keys and "other" not in keys and ("key 5", RECORDS["key 5"]) in store.items()
    assert ("key 5", b"no") not in store.items() and RECORDS["key 7"] in store.values() and b"no" not in store.values()
    assert store.keys() & {"key 1", "other"} == {"key 1"}
    with pytest.raises(TypeError):
        hash(store)
    with pytest.raises(TypeError):
        reversed(store)  # type: ignore[call-overload]
    match store:
        case {"key 3": value}:
            assert value == RECORDS["key 3"]
        case _:
            raise AssertionError


def test_the_order_is_that_of_the_indices(exact: Make) -> None:
    for values in "bytes", "str":
        of = (lambda value: value) if values == "bytes" else bytes.decode
        store = exact({key: of(value) for key, value in RECORDS.items()}, values=values)
        keys = list(store)
        assert store.index_many(keys).tolist() == list(range(len(keys)))
        assert list(store.keys()) == keys and list(store.values()) == store.get_many(keys)
        assert list(store.items()) == list(zip(keys, store.values(), strict=True))
        assert list(exact(dict(store.items()), values=values)) == keys  # the same seed


def test_iterations_outlive_the_handle(exact: Make) -> None:
    store = exact(RECORDS)
    keys, items, values = iter(store), iter(store.items()), iter(store.values())
    next(keys), next(items), next(values)
    array = exact({"abc": b""}).keys_array()
    store.close()
    del store
    gc.collect()
    assert len(list(keys)) == len(list(items)) == len(list(values)) == len(RECORDS) - 1
    assert array.tolist() == [b"abc"]


def test_a_closed_store_is_not_iterated(exact: Make) -> None:
    store = exact(RECORDS)
    store.close()
    for ask in (lambda: iter(store), store.keys, store.values, store.items, store.keys_array):
        with pytest.raises(ValueError, match="closed"):
            ask()


def test_without_keys_a_store_says_why_it_cannot_be_iterated(make: Make) -> None:
    store = make({"a": b"1", "b": b"22"}, seed=1)
    assert not isinstance(store, collections.abc.Mapping) and type(store) is Store
    for ask in (lambda: iter(store), store.keys, store.items, store.keys_array, lambda: dict(store)):
        with pytest.raises(TypeError, match="keys='exact'"):
            ask()
    assert sorted(store.values()) == [b"1", b"22"] and len(store.values()) == 2
    integers = make((np.arange(3), np.arange(3)), values="<i8")
    with pytest.raises(TypeError, match="keys='exact'"):
        list(integers)
    assert sorted(integers.values()) == [0, 1, 2]


def test_keys_alone(exact: Make) -> None:
    store = exact(["b", "a"], values=None)
    assert sorted(store) == sorted(store.keys()) == ["a", "b"] and "c" not in store
    assert not isinstance(store, collections.abc.Mapping)
    for ask in store.values, store.items:
        with pytest.raises(TypeError, match="no values"):
            ask()


def test_keys_array_of_strings(exact: Make) -> None:
    assert sorted(exact({"ab": b"", "cd": b""}).keys_array().tolist()) == [b"ab", b"cd"]
    for keys in {"a", "bc"}, {""}:
        with pytest.raises(TypeError, match="iterate"):
            exact(dict.fromkeys(keys, b"")).keys_array()


def test_duplicates_by_policy(exact: Make) -> None:
    pairs = [("a", b"1"), ("b", b"2"), ("a", b"333")]
    with pytest.raises(mphfstore.DuplicateKeyError) as caught:
        exact(pairs)
    assert caught.value.key == "a"
    assert exact(pairs, on_duplicate="first") == {"a": b"1", "b": b"2"}
    assert exact(pairs, on_duplicate="last") == {"a": b"333", "b": b"2"}
    keys = np.array([7, 8, 7], "u2")
    assert exact((keys, np.arange(3)), values="<i8", on_duplicate="last") == {7: 2, 8: 1}


def test_records_and_numbers_compare_with_a_dict(exact: Make) -> None:
    array = np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f8")])
    store = exact((["x", "y"], array), values=array.dtype)
    assert store == {"x": array[0], "y": array[1]} and store != {"x": array[1], "y": array[0]}
    assert [value["a"] for _, value in sorted(store.items())] == [1, 3]


def test_from_bytes_and_open_agree_on_the_class(exact: Make, make: Make) -> None:
    assert type(Store.from_bytes(exact(RECORDS).to_bytes())) is ExactStore
    assert type(Store.from_bytes(make(RECORDS).to_bytes())) is Store
    assert type(mphfstore.open(exact(RECORDS).to_bytes())) is ExactStore


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "neon"])
def test_batches_under_every_instruction_set(make: Make, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _build.lib.mphf_isa_available(isa.encode()):
        pytest.skip(f"no {isa} here")
    monkeypatch.setenv("MPHFSTORE_ISA", isa)
    for method in "brute", "chained":
        store = make(RECORDS, keys="exact", method=method)
        keys = [key for pair in zip(RECORDS, (f"absent {i}" for i in range(3000)), strict=True) for key in pair]
        assert store.contains_many(keys).tolist() == [True, False] * 3000
        assert store.contains_many(np.array(keys)).tolist() == [True, False] * 3000


@given(st.dictionaries(st.text(max_size=9) | st.binary(max_size=9), st.binary(max_size=9), max_size=40))
def test_the_reference_agrees(tmp_path_factory: pytest.TempPathFactory, records: dict[Any, bytes]) -> None:
    records = {key.encode("utf-8", "replace") if isinstance(key, str) else key: value for key, value in records.items()}
    path = tmp_path_factory.mktemp("exact") / "s"
    mphfstore.build(path, records, keys="exact", method="rotation", leaf_size=5, bucket_size=5, seed=9)
    data = path.read_bytes()
    reader = reference.Reader(data)
    reader.verify()
    store = mphfstore.open(path)
    assert [reader.key(i) for i in range(len(records))] == list(store) and store == records
    assert all(reader.get(key) == value for key, value in records.items())
    assert reader.get(b"some absent key") is None
    built = reference.build(
        list(records.items()), params=reference.Params("rotation", 5, *reader.params.fanouts[:2]),
        bucket_size=5, seed=9, fingerprint_bits=8, kind=3, schema=reader.schema,
    )  # fmt: skip
    assert built == data


@pytest.mark.parametrize("values", VALUES)
def test_both_paths_answer_alike(tmp_path: Path, values: str) -> None:
    kind, value = VALUES[values]
    for packing in {}, {"compression": "zstd", "dedupe": True}:
        if packing and kind not in ("bytes", "str", "json"):
            continue
        items = WORDS if kind is None else (WORDS, [value(i) for i in range(len(WORDS))])
        mphfstore.build(tmp_path / "s", items, values=kind, keys="exact", seed=1, **packing)
        fast, plain = FAST.open(tmp_path / "s"), PLAIN.open(tmp_path / "s")
        for (question, ask), key in itertools.product(QUESTIONS.items(), TEXTS):
            assert outcome(lambda: ask(fast, key)) == outcome(lambda: ask(plain, key)), (question, key)  # noqa: B023
    keys = np.arange(-5, 5)
    mphfstore.build(tmp_path / "s", (keys, keys), values="<i8", keys="exact", seed=1)
    fast, plain = FAST.open(tmp_path / "s"), PLAIN.open(tmp_path / "s")
    for (question, ask), key in itertools.product(QUESTIONS.items(), NUMBERS):
        assert outcome(lambda: ask(fast, key)) == outcome(lambda: ask(plain, key)), (question, key)  # noqa: B023
