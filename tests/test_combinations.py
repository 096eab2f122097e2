"""Every way to store keys with every kind of values, in every mode, asked in every form; pickled and reloaded."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mphfstore as ms

COUNT = 300
TEXTS = [f"k{i}" * (1 + i % 3) for i in range(COUNT)]
# Absent keys share no prefix with the others, and one has the width of a stored key.
ABSENT = ["?", "absent", "x1"]
KEYS: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "fingerprint": ({"fingerprint_bits": 32}, TEXTS, ABSENT),
    "exact text": ({"keys": "exact"}, TEXTS, ABSENT),
    "exact text, no fingerprints": ({"keys": "exact", "fingerprint_bits": 0}, TEXTS, ABSENT),
    "exact rows": ({"keys": "exact", "fingerprint_bits": 3}, [b"%04d" % i for i in range(COUNT)], [b"9999", b"1", b""]),
    "exact integers": ({"keys": "exact", "key_dtype": "u4"}, list(range(7, 7 + COUNT)), [0, 6, 7 + COUNT]),
}
OPTIONS: dict[str, tuple[dict[str, Any], Callable[[int], Any]]] = {
    "bytes": ({}, lambda i: b"v%d" % i * (i % 5)),
    "rows": ({}, lambda i: b"%08d" % i),
    "once": ({"dedupe": True}, lambda i: b"value %d" % (i % 7) * (1 + i % 7)),
    "one": ({"dedupe": True}, lambda i: b"the same"),
    "str": ({"values": "str"}, lambda i: f"é{i}" * (i % 5)),
    "str once": ({"values": "str", "dedupe": True}, lambda i: f"é{i % 7}" * 9),
    "json": ({"values": "json"}, lambda i: {"i": i, "of": [None] * (i % 3)}),
    "dtype": ({"values": "f8"}, lambda i: i / 8),
    "records": ({"values": [("a", "i4"), ("b", "S3")]}, lambda i: (i, b"%d" % i)),
    "compressed": ({"compression": "zstd"}, lambda i: b"value %d" % i * (i % 90)),
    "compressed once": ({"compression": "zstd", "dedupe": True}, lambda i: b"value %d" % (i % 7) * 100),
    "compressed json": ({"values": "json", "compression": "zstd"}, lambda i: [i, "é" * (i % 40)]),
}
MODES = ["mmap", "pread", "ram"]


def forms(keys: list[Any]) -> dict[str, Any]:
    """The same batch as a list, a numpy array and, where that is installed, one of pyarrow."""
    found: dict[str, Any] = {"list": keys, "array": np.array(keys, "i8" if isinstance(keys[0], int) else "S")}
    try:
        import pyarrow
    except ImportError:
        return found
    return found | {"arrow": pyarrow.array(keys)}


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def plain_arrow(value: Any, store: Any) -> Any:
    """A value of `get_arrow` as a list of records has it."""
    if store.info()["values"] == "json":
        return value if value is None else json.loads(value)
    return tuple(value.values()) if isinstance(value, dict) else value


def check(store: Any, records: dict[Any, Any], absent: list[Any], exact: bool) -> None:
    """All that a store answers."""
    keys, default = list(records), next(iter(records.values()))
    assert len(store) == len(records)
    for key in keys[:: max(1, COUNT // 10)]:
        assert key in store and plain(store[key]) == plain(store.get(key)) == records[key]
    for key in absent:
        assert key not in store and store.get(key, "none") == "none"
        with pytest.raises(KeyError):
            store[key]
    order = [*keys[::-1], *absent, keys[3], keys[3]]
    for form, batch in forms(order).items():
        assert store.contains_many(batch).tolist() == [key in records for key in order], form
        indices = store.index_many(batch)
        assert sorted(indices[:COUNT].tolist()) == list(range(COUNT))
        assert indices[COUNT : COUNT + 3].tolist() == [-1, -1, -1]
        found = store.get_many(batch, default)
        assert [plain(value) for value in found] == [records.get(key, default) for key in order], form
        with pytest.raises(KeyError):
            store.get_many(batch)
        expected = [records.get(key) for key in order]
        if form == "arrow":
            arrow = store.get_arrow(batch, threads=2)
            assert len(arrow) == len(order) and [plain_arrow(value, store) for value in arrow.to_pylist()] == expected
    if store.info()["value_width"] and not isinstance(default, bytes | str):
        out = np.empty(len(order), store.values_array().dtype)
        assert store.get_many(order, default, out=out, threads=2) is out
        assert out.tolist() == [records.get(key, default) for key in order]
    if isinstance(default, bytes):
        assert all(store.get_view(key) == records[key] for key in keys[::20])
    if exact:
        assert isinstance(store, ms.ExactStore)
        assert store.index_many(list(store)).tolist() == list(range(COUNT))
        assert {key: plain(value) for key, value in store.items()} == records
        assert [plain(value) for value in store.values()] == [records[key] for key in iter(store.keys())]
        assert list(map(type, itertools.islice(store, 3))) == [type(keys[0])] * 3
    else:
        assert type(store) is ms.Store
        with pytest.raises(TypeError, match="keys='exact'"):
            store.keys()
    store.verify()


@pytest.mark.parametrize("values", OPTIONS)
@pytest.mark.parametrize("keys", KEYS)
def test_every_combination_in_every_mode(keys: str, values: str, tmp_path: Path) -> None:
    if "compression" in OPTIONS[values][0]:
        pytest.importorskip("zstandard")
    (key_options, stored, absent), (value_options, make) = KEYS[keys], OPTIONS[values]
    options, exact = key_options | value_options, keys != "fingerprint"
    records = {key: make(i) for i, key in enumerate(stored)}
    others = {key: make(i + 1) for i, key in enumerate(stored)}
    for mode in MODES:
        ms.build(tmp_path / "s", records, seed=1, **options)
        store = ms.open(tmp_path / "s", mode=mode, verify=True)
        check(store, records, absent, exact)
        again = pickle.loads(pickle.dumps(store))
        assert type(again) is type(store) and again.info()["mode"] == mode
        check(again, records, absent, exact)
        if exact:
            assert store == again and (values == "records" or store == records)  # numpy has no record == tuple
        ms.build(tmp_path / "s", others, seed=2, **options)
        assert store.stale() and store.reload() and not store.stale()
        check(store, others, absent, exact)
        check(again, records, absent, exact)
        assert type(ms.Store.open(tmp_path / "s", mode)) is type(store)
    check(ms.Store.from_bytes(again.to_bytes()), records, absent, exact)


@pytest.mark.parametrize("mode", MODES)
def test_no_keys(mode: str, tmp_path: Path) -> None:
    for options in {}, {"compression": "zstd"}, {"values": "json", "dedupe": True}, {"values": "i4"}:
        if "compression" in options:
            pytest.importorskip("zstandard")
        ms.build(tmp_path / "s", {}, keys="exact", **options)
        store = ms.open(tmp_path / "s", mode=mode)
        assert store == {} and "a" not in store and len(store.get_many([])) == 0 and list(store.items()) == []


def test_a_mapping_stays_one(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {"a": b"1"}, keys="exact")
    store = ms.open(tmp_path / "s")
    for options in {}, {"keys": "exact", "values": None}:
        ms.build(tmp_path / "s", ["a"] if options else {"a": b"2"}, **options)
        with pytest.raises(ms.FormatError, match="exact"):
            store.reload()
        with pytest.raises(ms.FormatError, match="exact"):
            ms.ExactStore.open(tmp_path / "s")
        assert store == {"a": b"1"}


@pytest.mark.parametrize("mode", MODES)
def test_items_are_of_one_file_whatever_is_reloaded(mode: str, tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {i: i for i in range(3000)}, keys="exact", key_dtype="i8", values="i8")
    store = ms.open(tmp_path / "s", mode=mode)
    items = iter(store.items())
    seen = [next(items)]
    ms.build(tmp_path / "s", {i: -i for i in range(3000)}, keys="exact", key_dtype="i8", values="i8")
    assert store.reload()
    seen += items
    assert len(seen) == 3000 and all(key == value for key, value in seen)
    assert store == {i: -i for i in range(3000)}


@pytest.mark.parametrize("mode", ["mmap", "ram"])
def test_arrays_of_keys_are_counted(mode: str, tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {"aa": b"1", "bb": b"2"}, keys="exact")
    store = ms.open(tmp_path / "s", mode=mode)
    keys = store.keys_array()
    assert sorted(keys.tolist()) == [b"aa", b"bb"] and not keys.flags.writeable
    with pytest.raises(BufferError):
        store.close()
    del keys
    store.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("keys", ["fingerprint", "exact"])
def test_long_batches_on_threads(keys: str, mode: str, tmp_path: Path) -> None:
    count = 150_000
    stored = np.char.mod("k%d", np.arange(count))
    ms.build(tmp_path / "s", (stored, np.arange(count)), keys=keys, values="i8", preset="quick", fingerprint_bits=24)
    store = ms.open(tmp_path / "s", mode=mode)
    asked = np.concatenate([stored[::-1], ["absent"]])
    expected = [*range(count - 1, -1, -1), -5]
    for threads in 1, 3:
        assert store.get_many(asked, -5, threads=threads).tolist() == expected
        assert store.index_many(asked, threads=threads)[-1] == -1
        assert store.contains_many(asked, threads=threads).tolist() == [True] * count + [False]


@pytest.mark.parametrize("mode", MODES)
def test_nulls_are_absent(mode: str, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    for keys, dtype in [(["a", "b"], None), ([0, 1], "i4")]:
        ms.build(tmp_path / "s", zip(keys, [b"1", b"2"], strict=True), keys="exact", key_dtype=dtype)
        store = ms.open(tmp_path / "s", mode=mode)
        assert store.contains_many(pyarrow.array([None, keys[1], None, keys[0]])).tolist() == [False, True, False, True]
        assert store.get_arrow(pyarrow.array([None, keys[1]])).to_pylist() == [None, b"2"]
