"""What counts as a key, and that every way of writing one down names the same record."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import described, names_in
from hypothesis import given
from hypothesis import strategies as st

import mphfstore
from mphfstore import Store
from mphfstore._keys import BytesKeys, IntegerKeys, KeyBatch

Make = Callable[..., Store]
INTEGER_TYPES = [f"{order}{kind}{size}" for order in "<>" for kind in "iu" for size in (1, 2, 4, 8)]
STRINGS = ["", "a", "NUL\0inside", "\0leading", "ä", "日本語", "\U0001f511", "x" * 3000]
TRAILING_NULS = ["\0", "\0\0", "a\0", "a\0\0"]


def spellings(text: str) -> list[Any]:
    """The same key as every type of object."""
    raw = text.encode()
    return [text, raw, bytearray(raw), memoryview(raw), np.str_(text), np.bytes_(raw)]


@pytest.mark.parametrize("text", STRINGS + TRAILING_NULS, ids=lambda text: ascii(text[:20]))
def test_a_key_is_the_same_in_every_type(make: Make, text: str) -> None:
    others = [other for other in STRINGS + TRAILING_NULS if other != text]
    for stored in spellings(text)[:4]:
        store = make([(stored, b"this"), *((other, b"other") for other in others)], fingerprint_bits=32)
        for key in spellings(text):
            if isinstance(key, np.generic) and text in TRAILING_NULS:
                continue  # numpy's scalars drop them before we see one
            assert key in store and store[key] == store.get(key) == b"this"
            assert store.get_many([key]) == [b"this"]
            assert store.contains_many([key]).all() and store.index_many([key])[0] >= 0
        assert store.get_many(spellings(text)[:4]) == [b"this"] * 4


def test_trailing_nuls_count_outside_numpy_arrays(make: Make) -> None:
    store = make([("a", b"0"), ("a\0", b"1"), (b"a\0\0", b"2"), ("", b"3"), ("\0", b"4")])
    assert store.get_many(["a", "a\0", "a\0\0", "", "\0"]) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("dtype", ["S4", "U4", "<U4", ">U4"])
def test_trailing_nuls_do_not_count_in_numpy_arrays(make: Make, dtype: str) -> None:
    store = make((np.array(["a\0\0", "b\0c", "", "dddd"], dtype), [b"0", b"1", b"2", b"3"]))
    assert store.get_many(["a", "b\0c", "", "dddd"]) == [b"0", b"1", b"2", b"3"]
    assert store.get_many(np.array(["a\0", "b\0c", "\0", "dddd"], dtype)) == [b"0", b"1", b"2", b"3"]
    assert "a\0\0" not in store


def test_keys_that_numpy_holds_equal_are_duplicates(tmp_path: Path) -> None:
    with pytest.raises(mphfstore.DuplicateKeyError) as caught:
        mphfstore.build(tmp_path / "s", (np.array([b"a\0", b"b", b"a"], "S2"), [b""] * 3))
    assert (caught.value.key, caught.value.positions) == (b"a", (0, 2))


@pytest.mark.parametrize("dtype", ["S3", "S9", "<U3", ">U5"])
@pytest.mark.parametrize("layout", ["strided", "reversed", "read-only", "field", "column"])
def test_string_arrays_of_every_layout(make: Make, dtype: str, layout: str) -> None:
    keys = laid_out(np.array([f"k{i}" for i in range(40)], dtype), layout)
    expected = [b"k%d" % i for i in range(40)]
    store = make((keys, expected))
    assert store.get_many(expected) == expected
    assert store.get_many(keys) == expected
    assert store.contains_many(keys).all()


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
@pytest.mark.parametrize("layout", ["strided", "reversed", "read-only", "field", "column"])
def test_integer_arrays_of_every_layout(make: Make, dtype: str, layout: str) -> None:
    values = [b"%d" % i for i in range(100)]
    keys = laid_out(np.arange(100).astype(dtype), layout)
    store = make((keys, values))
    assert store.info()["key_type"] == np.dtype(dtype).newbyteorder("<").str
    assert store.get_many(keys) == store.get_many(range(100)) == values
    assert [store[i] for i in range(100)] == [store[key] for key in keys] == values


def laid_out(array: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    """An equal array in other memory."""
    if layout == "strided":
        array = np.repeat(array, 3)[::3]
    elif layout == "reversed":
        array = array[::-1].copy()[::-1]
    elif layout == "field":
        records = np.zeros(len(array), [("pad", "u1"), ("key", array.dtype)])
        records["key"] = array
        array = records["key"]
    elif layout == "column":
        array = np.stack([array, array[::-1]], axis=1)[:, 0]
    array.flags.writeable = layout != "read-only"
    assert array.flags.c_contiguous == (layout == "read-only")
    return array


@pytest.mark.parametrize("keys", [np.array([], "S"), np.array([], "U7"), np.empty(0, object), [], (), iter(())])
def test_arrays_of_no_strings(make: Make, keys: Any) -> None:
    assert len(make(keys, values=None)) == 0
    assert make({"a": b"1"}).get_many(keys) == []


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_arrays_of_no_integers(make: Make, dtype: str) -> None:
    store = make(np.empty(0, dtype), values=None)
    assert (len(store), store.info()["key_type"]) == (0, np.dtype(dtype).newbyteorder("<").str)
    assert store.index_many(np.empty(0, dtype)).shape == store.index_many([]).shape == (0,)


def test_arrays_of_zero_width_hold_the_empty_key(make: Make) -> None:
    nothing = np.empty(1, [("a", "S0"), ("b", "S1")])["a"]
    assert nothing.dtype.itemsize == 0
    assert make((nothing, [b"1"]))[""] == b"1"
    assert make((np.array([""]), [b"1"])).get_many(nothing) == [b"1"]


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_integer_keys_reach_from_the_lowest_to_the_highest(make: Make, dtype: str) -> None:
    bounds = np.iinfo(dtype)
    keys = sorted({int(bounds.min), int(bounds.min) + 1, 0, 1, int(bounds.max) - 1, int(bounds.max)})
    records = [(key, b"%d" % key) for key in keys]
    store = make(records, key_dtype=dtype, fingerprint_bits=32)
    assert [store[key] for key in keys] == [value for _, value in records]
    assert store.get_many(np.array(keys, dtype)) == store.get_many(keys) == [value for _, value in records]
    for outside in (int(bounds.min) - 1, int(bounds.max) + 1, 1 << 64, -(1 << 70)):
        assert outside not in store and store.get(outside, 5) == 5
        with pytest.raises(KeyError):
            store[outside]


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
@pytest.mark.parametrize("side", [0, 1])
def test_integer_keys_outside_the_dtype_are_refused(tmp_path: Path, dtype: str, side: int) -> None:
    bounds = np.iinfo(dtype)
    outside = (int(bounds.min) - 1, int(bounds.max) + 1)[side]
    batches: list[Any] = [[0, outside], np.array([0, outside], object)]
    if -(1 << 63) <= outside < 1 << 63:
        batches.append(np.array([0, outside], ">i8"))
    for batch in batches:
        with pytest.raises(OverflowError):
            mphfstore.build(tmp_path / "s", batch, values=None, key_dtype=dtype)
    with pytest.raises(OverflowError), mphfstore.Builder(tmp_path / "s", key_dtype=dtype) as builder:
        builder.add(outside, b"")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("stored", "asked"), [*itertools.permutations(["<i8", "<u8", "<u1", ">i2"], 2)])
def test_integers_of_one_value_are_one_key_in_every_dtype(make: Make, stored: str, asked: str) -> None:
    store = make((np.arange(100).astype(stored), [b"%d" % i for i in range(100)]))
    assert store.get_many(np.arange(100).astype(asked)) == [b"%d" % i for i in range(100)]
    assert [store[np.dtype(asked).type(i)] for i in range(100)] == [b"%d" % i for i in range(100)]


@given(st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_integers_of_any_value(tmp_path_factory: pytest.TempPathFactory, keys: set[int]) -> None:
    path = tmp_path_factory.mktemp("integers") / "s"
    mphfstore.build(path, [(key, key) for key in keys], key_dtype="i8", values="i8")
    store = mphfstore.open(path)
    assert all(store[key] == key for key in keys)
    assert store.get_many(np.array(sorted(keys))).tolist() == sorted(keys)


def test_an_integer_is_never_a_string(make: Make, tmp_path: Path) -> None:
    strings, integers = make({"1": b"string"}), make([(1, b"integer")], key_dtype="u1")
    for wrong_store, key in ((strings, 1), (integers, "1"), (integers, b"1"), (integers, b"\1")):
        for ask in (wrong_store.__getitem__, wrong_store.__contains__, wrong_store.get):
            with pytest.raises(TypeError):
                ask(key)
        for ask_many in (wrong_store.get_many, wrong_store.contains_many, wrong_store.index_many):
            with pytest.raises(TypeError):
                ask_many([key])
            with pytest.raises(TypeError):
                ask_many(np.array([key]))
    for key, dtype in ((1, None), ("1", "u1")):
        with pytest.raises(TypeError):
            mphfstore.build(tmp_path / "s", {key: b""}, key_dtype=dtype)


@pytest.mark.parametrize(
    "key", [None, 1, 1.5, ("a",), ["a"], object(), np.int64(1), np.array([1, 2], "u1")], ids=described
)
def test_other_types_are_no_string_keys(make: Make, tmp_path: Path, key: Any) -> None:
    store = make({"a": b"1"})
    for ask in (store.__getitem__, store.__contains__, store.get):
        with pytest.raises(TypeError, match="bytes or str"):
            ask(key)
    for ask_many in (store.get_many, store.contains_many, store.index_many):
        with pytest.raises(TypeError, match="bytes or str"):
            ask_many([key])
        with pytest.raises(TypeError, match="bytes or str"):
            ask_many(["a", key])
    with pytest.raises(TypeError, match="bytes or str"):
        mphfstore.build(tmp_path / "s", [(key, b"")])
    with pytest.raises(TypeError, match="bytes or str"), mphfstore.Builder(tmp_path / "s") as builder:
        builder.add(key, b"")
    assert "s" not in names_in(tmp_path)


@pytest.mark.parametrize("key", [None, "1", b"1", 1.0, (1,), np.float64(1)], ids=repr)
def test_other_types_are_no_integer_keys(make: Make, tmp_path: Path, key: Any) -> None:
    store = make([(1, b"1")], key_dtype="i4")
    for ask in (store.__getitem__, store.__contains__, store.get):
        with pytest.raises(TypeError, match="an integer"):
            ask(key)
    with pytest.raises(TypeError, match="an integer"):
        store.get_many([1, key])
    with pytest.raises(TypeError, match="an integer"):
        mphfstore.build(tmp_path / "s", [(key, b"")], key_dtype="i4")


@pytest.mark.parametrize("batch", ["ab", b"ab", bytearray(b"ab"), memoryview(b"ab"), 5, np.array([["a"]]), np.array(5)])
def test_what_is_no_batch_is_refused(make: Make, batch: Any) -> None:
    stores = [make({"a": b"1"})]
    if not isinstance(batch, bytes | bytearray | memoryview):  # which are iterables of integers
        stores.append(make([(97, b"1")], key_dtype="u1"))
    for store in stores:
        for ask in (store.get_many, store.contains_many, store.index_many):
            with pytest.raises((TypeError, ValueError)):
                ask(batch)


@pytest.mark.parametrize("dtype", ["f4", "?", "c8", "M8[s]", [("a", "i4")]], ids=str)
def test_arrays_of_other_dtypes_are_no_keys(make: Make, tmp_path: Path, dtype: Any) -> None:
    array = np.zeros(1, dtype)
    with pytest.raises(TypeError):
        mphfstore.build(tmp_path / "s", array, values=None)
    for store in (make({"a": b"1"}), make([(0, b"1")], key_dtype="u1")):
        with pytest.raises(TypeError):
            store.get_many(array)


@pytest.mark.parametrize("dtype", ["f8", "S4", "?", "O", "M8[s]"])
def test_key_dtype_is_an_integer_dtype(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(TypeError, match="integer dtype"):
        mphfstore.build(tmp_path / "s", {}, key_dtype=dtype)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00"], ids=ascii)
def test_lone_surrogates_raise_a_clear_error(make: Make, tmp_path: Path, text: str) -> None:
    store = make({"a": b"1"})
    for ask in (store.__getitem__, store.__contains__, store.get):
        with pytest.raises(UnicodeEncodeError, match="surrogates"):
            ask(text)
    for batch in ([text], ["a", text], [b"a", text], np.array([text])):
        with pytest.raises(UnicodeEncodeError, match="surrogates"):
            store.get_many(batch)
        with pytest.raises(UnicodeEncodeError, match="surrogates"):
            mphfstore.build(tmp_path / "s", batch, values=None)


@pytest.mark.parametrize(
    "parts", [["b", "S2", "S2"], ["S2", "S5", "U3"], ["b", "U1"], ["S2", "U2", "b", "S2"]], ids=str
)
def test_batches_of_different_layouts_make_one_store(tmp_path: Path, parts: list[str]) -> None:
    expected = []
    with mphfstore.Builder(tmp_path / "s") as builder:
        for number, part in enumerate(parts):
            keys = [f"{number}", f"{chr(97 + number)}"]
            builder.add_many(keys if part == "b" else np.array(keys, part), [b"%d" % number] * 2)
            expected += [(key, b"%d" % number) for key in keys]
    store = mphfstore.open(tmp_path / "s")
    assert [(key, store[key]) for key, _ in expected] == expected


@given(st.lists(st.binary(max_size=6), max_size=30), st.integers(0, 8))
def test_batches_hold_the_keys_they_were_made_of(keys: list[bytes], cut: int) -> None:
    kind = BytesKeys()
    whole = KeyBatch.concatenate([kind.batch(keys[:cut]), kind.batch(np.array(keys[cut:], "S6"))])
    expected = keys[:cut] + [key.rstrip(b"\0") for key in keys[cut:]]
    assert [whole[i] for i in range(len(whole))] == expected
    back = np.arange(len(keys), dtype=np.uint64)[::-1].copy()
    assert [whole.take(back)[i] for i in range(len(whole))] == expected[::-1]


@given(st.lists(st.integers(-128, 127), max_size=30))
def test_integer_batches_hold_their_keys(keys: list[int]) -> None:
    kind = IntegerKeys(">i1")
    for batch in (kind.batch(keys), kind.batch(np.array(keys, "i8")), kind.batch(iter(keys))):
        assert [kind.decode(batch[i]) for i in range(len(batch))] == keys


def test_a_mutable_key_may_change_after_it_was_added(tmp_path: Path) -> None:
    key = bytearray(b"a")
    with mphfstore.Builder(tmp_path / "s", values=None) as builder:
        for letter in b"abc":
            key[0] = letter
            builder.add(key)
    assert mphfstore.open(tmp_path / "s").contains_many(["a", "b", "c"]).all()


@pytest.mark.parametrize("dtype", ["<i8", "S2", "U2", "O"])
def test_an_array_of_keys_may_change_after_it_was_added(tmp_path: Path, dtype: str) -> None:
    first, second = (np.array(keys).astype(dtype) for keys in (["10", "11"], ["12", "13"]))
    buffer = first.copy()
    with mphfstore.Builder(tmp_path / "s", values=None, fingerprint_bits=32) as builder:
        builder.add_many(buffer)
        buffer[:] = second
    store = mphfstore.open(tmp_path / "s")
    assert store.contains_many(first).all() and not store.contains_many(second).any()
