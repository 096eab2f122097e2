"""Values of every kind: what is stored comes back, and what cannot be stored is refused rather than bent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import names_in
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mphfstore
from mphfstore import Store

Make = Callable[..., Store]
SCALARS = [
    "?",
    "i1",
    "u1",
    "<i2",
    ">u2",
    "<i4",
    ">i4",
    "<u8",
    ">i8",
    "f2",
    "<f4",
    ">f8",
    "c8",
    ">c16",
    "M8[ns]",
    "m8[s]",
]
RECORDS = [
    np.dtype([("x", "<i4"), ("y", ">f8")]),
    np.dtype([("x", "u1"), ("y", "<u8")], align=True),
    np.dtype([("name", "S3"), ("where", "<f4", (2, 2)), ("deep", [("a", ">i2"), ("b", "U2")])]),
]


def keys_for(values: Any) -> list[str]:
    return [f"k{i}" for i in range(len(values))]


@pytest.mark.parametrize("fixed", [False, True], ids=["variable", "fixed width"])
@given(data=st.data())
def test_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, fixed: bool, data: st.DataObject) -> None:
    width = data.draw(st.integers(0, 9)) if fixed else None
    one = st.binary(min_size=width or 0, max_size=40 if width is None else width)
    values = data.draw(st.lists(one, max_size=40))
    path, keys = tmp_path_factory.mktemp("values") / "s", keys_for(values)
    mphfstore.build(path, (keys, values))
    store = mphfstore.open(path)
    assert isinstance(store, Store)
    assert [store[key] for key in keys] == store.get_many(keys) == values
    same_width = len({len(value) for value in values}) < 2
    assert store.info()["value_width"] == ((len(values[0]) if values else 0) if same_width else None)


@pytest.mark.parametrize("values", [[b""] * 5, [b""], [b"", b"x"], [b"x" * 200_000, b"", b"y" * 70_000]])
def test_empty_and_long_values(make: Make, values: list[bytes]) -> None:
    store = make((keys_for(values), values))
    assert store.get_many(keys_for(values)) == [store[key] for key in keys_for(values)] == values
    store.verify()


def test_bytes_of_every_type(make: Make) -> None:
    shorts = memoryview(np.array([1, 2], "<u2"))
    values: list[Any] = [b"a\0", bytearray(b"bb\0"), memoryview(b"cccc"), memoryview(b"d1d2")[::2], shorts]
    assert make((keys_for(values), values)).get_many(keys_for(values)) == [bytes(value) for value in values]
    array = np.array([b"a", b"bb"])
    assert make((keys_for(array), array)).get_many(keys_for(array)) == [b"a", b"bb"]


@pytest.mark.parametrize("dtype", SCALARS + RECORDS, ids=str)
@given(data=st.data())
def test_arrays_come_back(tmp_path_factory: pytest.TempPathFactory, dtype: Any, data: st.DataObject) -> None:
    # No NaN in records: numpy calls records with one unequal.
    elements = {"elements": {"allow_nan": False}} if np.dtype(dtype).kind in "Vfc" else {}
    array = data.draw(hnp.arrays(dtype, st.integers(0, 30), **elements))
    path, keys = tmp_path_factory.mktemp("arrays") / "s", keys_for(array)
    mphfstore.build(path, (keys, np.repeat(array, 2)[::2]), values=dtype, preset="quick")
    store = mphfstore.open(path)
    assert isinstance(store, Store)
    back = store.get_many(keys)
    assert back.dtype == array.dtype.newbyteorder("<")
    np.testing.assert_array_equal(back, array)
    if array.dtype.names is None:
        np.testing.assert_array_equal(np.array([store[key] for key in keys], back.dtype), array)
    np.testing.assert_array_equal(store.values_array()[store.index_many(keys)], array)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("f4", [1.5, float("nan"), float("inf"), -0.0, 3]),
        ("u8", [0, 2**63, 2**64 - 1]),
        ("u8", [2**64 - 1]),
        ("i8", [-(2**63), 2**63 - 1]),
        ("u1", [0, 255]),
        ("i4", [True, 7]),
        ("?", [True, False]),
        ("S4", [b"", b"abcd", b"a\0b"]),
        ("U4", ["", "üñí€", "a"]),
        ("V3", [b"abc", b"\0\0\0"]),
        ([("a", "i4"), ("b", "S2")], [(1, b"x"), (-1, b"yz")]),
    ],
    ids=str,
)
def test_lists_of_python_objects_come_back(make: Make, dtype: Any, values: list[Any]) -> None:
    store = make((keys_for(values), values), values=dtype)
    np.testing.assert_array_equal(store.get_many(keys_for(values)), np.array(values, dtype))
    single = make(zip(keys_for(values), values, strict=True), values=dtype)
    assert single.get_many(keys_for(values)).tobytes() == np.array(values, dtype).tobytes()


@pytest.mark.parametrize(
    "dtype",
    [np.dtype([(("title", "a"), "<u4")]), np.dtype([("a", "u1", (0,)), ("b", "u1")]), "(2,)<u4", "(2,2)S3"],
    ids=str,
)
def test_an_unusual_dtype_is_refused_or_kept_exactly(tmp_path: Path, dtype: Any) -> None:
    array = np.frombuffer(b"abcdefghijkl" * 3, np.dtype(dtype), 3)
    try:
        mphfstore.build(tmp_path / "s", (["a", "b", "c"], array), values=dtype)
    except (TypeError, ValueError):
        assert names_in(tmp_path) == []
        return
    store = mphfstore.open(tmp_path / "s")
    assert isinstance(store, Store)
    np.testing.assert_array_equal(store.get_many(["a", "b", "c"]), array)
    assert all(np.array_equal(store[key], value) for key, value in zip("abc", array, strict=True))


def test_wider_string_arrays_are_taken_if_their_strings_fit(make: Make) -> None:
    assert make((["a", "b"], np.array([b"x", b"yz"], "S50")), values="S2").get_many(["a", "b"]).tolist() == [
        b"x",
        b"yz",
    ]
    assert make((["a", "b"], np.array(["x", "yz"], ">U50")), values="U2").get_many(["a", "b"]).tolist() == ["x", "yz"]


@pytest.mark.parametrize("dtype", SCALARS + RECORDS, ids=str)
def test_absent_keys_take_the_default(make: Make, dtype: Any) -> None:
    store = make((["a"], np.zeros(1, dtype)), values=dtype, fingerprint_bits=32)
    default = np.ones(1, dtype)[0]
    expected = np.concatenate([np.ones(1, dtype), np.zeros(1, dtype)])
    assert np.array_equal(store.get_many(["absent", "a"], default), expected)
    with pytest.raises(KeyError, match="absent"):
        store.get_many(["a", "absent"])


def test_values_may_change_after_they_were_added(tmp_path: Path) -> None:
    value, array = bytearray(b"one"), np.array([10, 11])
    with mphfstore.Builder(tmp_path / "bytes") as builder:
        builder.add("a", value)
        value[:] = b"two"
        builder.add("b", value)
    with mphfstore.Builder(tmp_path / "array", values="i8") as builder:
        builder.add_many(["a", "b"], array)
        array += 90
        builder.add_many(["c", "d"], array)
    assert mphfstore.open(tmp_path / "bytes").get_many(["a", "b"]) == [b"one", b"two"]
    assert mphfstore.open(tmp_path / "array").get_many(["a", "b", "c", "d"]).tolist() == [10, 11, 100, 101]


def test_values_array_is_read_only_and_for_dtypes_only(make: Make) -> None:
    store = make((["a", "b"], [1, 2]), values="<u2")
    array = store.values_array()
    assert array.dtype == "<u2" and sorted(array) == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5
    for other in (make({"a": b"1"}), make(["a"], values=None)):
        with pytest.raises(TypeError):
            other.values_array()
