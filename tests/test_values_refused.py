"""Values that a store cannot hold are refused, and nothing is cut off, wrapped round or mixed up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import names_in

import mphfstore


def keys_for(values: Any) -> list[str]:
    return [f"k{i}" for i in range(len(values))]


@pytest.mark.parametrize("value", ["text", 1, None, 1.5, ["a"], np.array([1], "u1")], ids=repr)
def test_what_is_no_bytes_is_refused(tmp_path: Path, value: object) -> None:
    for values in ([value], [b"a", value], [value, b"a"]):
        with pytest.raises(TypeError, match="bytes"):
            mphfstore.build(tmp_path / "s", (keys_for(values), values))
    with pytest.raises(TypeError), mphfstore.Builder(tmp_path / "s") as builder:
        builder.add("a", value)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("value", ["text", 1, 1.5], ids=repr)
def test_add_itself_refuses_a_value_of_another_type(tmp_path: Path, value: object) -> None:
    with mphfstore.Builder(tmp_path / "s") as builder:
        builder.add("a", b"1")
        with pytest.raises(TypeError):
            builder.add("b", value)
    assert len(mphfstore.open(tmp_path / "s")) == 1


@pytest.mark.parametrize("kind", ["bytes", "<u4"])
def test_records_stay_together_after_a_refused_one(tmp_path: Path, kind: str) -> None:
    good: list[Any] = [b"1", b"22"] if kind == "bytes" else [1, 22]
    with mphfstore.Builder(tmp_path / "s", values=kind) as builder:
        builder.add("first", good[0])
        with pytest.raises(TypeError):  # at once, or at the latest with the next batch
            builder.add("bad", 1.5)
            builder.add_many(["not reached"], good[:1])
        builder.add_many(["y", "z"], good)
    store = mphfstore.open(tmp_path / "s")
    assert (store.get("y"), store.get("z")) == tuple(good)
    assert "bad" not in store


@pytest.mark.parametrize("values", [[b"1", b"2"], [], np.array([1, 2, 3, 4])], ids=str)
def test_counts_of_keys_and_values_must_agree(tmp_path: Path, values: Any) -> None:
    kind = "bytes" if isinstance(values, list) else "i8"
    with pytest.raises(ValueError, match="3 keys, but"):
        mphfstore.build(tmp_path / "s", (["a", "b", "c"], values), values=kind)
    assert names_in(tmp_path) == []


def test_a_missing_and_a_superfluous_value_are_refused(tmp_path: Path) -> None:
    with mphfstore.Builder(tmp_path / "with") as builder:
        with pytest.raises(TypeError, match="missing"):
            builder.add("a")
        with pytest.raises(TypeError, match="missing"):
            builder.add_many(["a"])
    with mphfstore.Builder(tmp_path / "without", values=None) as builder:
        with pytest.raises(TypeError, match="no values"):
            builder.add("a", b"1")
        with pytest.raises(TypeError, match="no values"):
            builder.add_many(["a"], [b"1"])
    assert len(mphfstore.open(tmp_path / "with")) == len(mphfstore.open(tmp_path / "without")) == 0


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("u1", 256), ("u1", -1), ("i1", 128), ("i1", -129), ("u4", 1 << 32), ("i8", 1 << 63), ("i8", -(1 << 63) - 1),
        ("u8", 1 << 64), ("u8", -1), ("u4", np.uint64(1 << 40)), ([("a", "u1")], (256,)),
    ],
    ids=str,
)  # fmt: skip
def test_integers_that_do_not_fit_overflow(tmp_path: Path, dtype: Any, value: Any) -> None:
    other = (1,) if isinstance(value, tuple) else 1
    for values in ([value], [other, value], [value, other]):
        with pytest.raises(OverflowError):
            mphfstore.build(tmp_path / "s", (keys_for(values), values), values=dtype)
    assert names_in(tmp_path) == []


def test_arrays_of_integers_that_do_not_fit_overflow(tmp_path: Path) -> None:
    for given_dtype, dtype, value in (("i8", "u4", -1), (">u8", "i8", 1 << 63), ("u2", "u1", 256), ("i4", "u8", -1)):
        with pytest.raises(OverflowError):
            mphfstore.build(tmp_path / "s", (["a", "b"], np.array([0, value], given_dtype)), values=dtype)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("S3", b"abcd"), ("U3", "abcd"), ("V3", b"abcd"), ("V3", b"ab"), ([("a", "S3")], (b"abcd",)),
     ([("a", "U3")], ("abcd",)), ([("a", [("b", "S1")])], ((b"xy",),))],
    ids=str,
)  # fmt: skip
def test_strings_that_do_not_fit_are_refused_not_cut(tmp_path: Path, dtype: Any, value: Any) -> None:
    with pytest.raises(ValueError):
        mphfstore.build(tmp_path / "s", (["a"], [value]), values=dtype)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("i4", 1.0), ("i4", "1"), ("f8", "1.5"), ("f4", 1j), ("?", 1), ("S4", "text"), ("S4", 5), ("U4", b"raw"),
     ("U4", 5), ("U4", 1.5), ("f4", None), ("u4", None), ("M8[s]", 5), ([("a", "i4")], 5), ([("a", "i4")], (1.7,)),
     ("V3", 5)],
    ids=str,
)  # fmt: skip
def test_values_of_another_type_are_refused(tmp_path: Path, dtype: Any, value: Any) -> None:
    with pytest.raises(TypeError):
        mphfstore.build(tmp_path / "s", (["a"], [value]), values=dtype)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("f4", [1e300]), ("f4", [-1e39, 1]), ("f2", [70_000]), ("f4", [1 << 200]), ("f4", [1 << 70, 1e300]),
     ("f8", [1 << 2000]), ("c8", [1e300j]), ("c8", [1 << 200]), ([("a", "f4")], [(1e300,)])],
    ids=lambda x: f"{x!s:.20}",
)  # fmt: skip
def test_numbers_too_large_for_a_float_are_refused(tmp_path: Path, dtype: Any, values: list[Any]) -> None:
    with pytest.raises((OverflowError, ValueError)):
        mphfstore.build(tmp_path / "s", (keys_for(values), values), values=dtype)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.array(["9000-01-01"], "M8[D]"), "M8[ns]"),
        (np.array([1 << 60], "m8[s]"), "m8[ns]"),
        (np.array(["2020-01-01T00:00:00.5"], "M8[ms]"), "M8[s]"),
        (np.array([1500], "m8[ms]"), "m8[s]"),
    ],
    ids=["date too far", "time too long", "part of a second", "part of a duration"],
)
def test_times_are_neither_wrapped_nor_cut(tmp_path: Path, given: Any, dtype: str) -> None:
    for values, kind in ((given, dtype), (list(given), dtype), (given.view([("t", given.dtype)]), [("t", dtype)])):
        with pytest.raises((OverflowError, ValueError, TypeError)):
            mphfstore.build(tmp_path / "s", (["a"], values), values=kind)
    assert names_in(tmp_path) == []


def test_records_of_other_fields_are_refused(tmp_path: Path) -> None:
    for other in ([("b", "i4")], [("a", "i4"), ("b", "i4")], [("a", "f4")]):
        with pytest.raises(TypeError):
            mphfstore.build(tmp_path / "s", (["a"], np.zeros(1, other)), values=[("a", "i4")])
    with pytest.raises(ValueError):
        mphfstore.build(tmp_path / "s", (["a"], [(1, 2)]), values=[("a", "i4")])


@pytest.mark.parametrize("dtype", ["O", [("a", "O")], [("a", [("b", "O")])]], ids=str)
def test_objects_are_refused(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(TypeError, match="Python objects"):
        mphfstore.build(tmp_path / "s", {}, values=dtype)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("dtype", ["S", "U", "V", "S0"])
def test_dtypes_without_width_are_refused(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(ValueError, match="no width"):
        mphfstore.build(tmp_path / "s", {}, values=dtype)


@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (1, 2)])
def test_arrays_of_several_dimensions_are_refused(tmp_path: Path, shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError):
        mphfstore.build(tmp_path / "s", (["a", "b"][: shape[0]], np.zeros(shape)), values="f8")
