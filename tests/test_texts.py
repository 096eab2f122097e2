"""Values that are text or JSON, equal ones stored once, rates in place of fingerprint bits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from conftest import described, names_in, sections_of, with_section
from hypothesis import given
from hypothesis import strategies as st

import mphfstore
from mphfstore import FormatError, Store, _strings

Make = Callable[..., Store]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
PACKINGS: list[dict[str, Any]] = [
    {}, {"dedupe": True}, {"compression": "zstd"}, {"dedupe": True, "compression": "zstd"},
]  # fmt: skip


def keys_for(values: Any) -> list[str]:
    return [f"k{i}" for i in range(len(values))]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@given(values=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=30))
def test_text_comes_back(tmp_path_factory: pytest.TempPathFactory, packing: Any, values: list[str]) -> None:
    comes_back(tmp_path_factory.mktemp("text") / "s", values, "str", packing)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@given(values=st.lists(JSON, max_size=12))
def test_json_comes_back(tmp_path_factory: pytest.TempPathFactory, packing: Any, values: list[Any]) -> None:
    comes_back(tmp_path_factory.mktemp("json") / "s", values, "json", packing)


def comes_back(path: Path, values: list[Any], kind: str, packing: dict[str, Any]) -> None:
    keys = keys_for(values)
    mphfstore.build(path, (keys, values), values=kind, seed=3, **packing)
    with mphfstore.Builder(path.with_name("single"), values=kind, seed=3, **packing) as builder:
        for key, value in zip(keys, values, strict=True):
            builder.add(key, value)
    assert path.read_bytes() == path.with_name("single").read_bytes()
    store = mphfstore.open(path)
    assert isinstance(store, Store) and store.info()["values"] == kind
    assert repr([store[key] for key in keys]) == repr(values)  # types, too: 1 is not True
    assert store.get_many(keys) == [store.get(key) for key in keys] == values
    assert store.get_many([*keys, "absent"], None) == [*values, None]
    reader = reference.Reader(path.read_bytes())
    reader.verify()
    for key, value in zip(keys, values, strict=True):
        raw = reader.get(key.encode())
        assert raw is not None and (raw.decode() if kind == "str" else json.loads(raw)) == value
    with pytest.raises(TypeError, match="not of a numpy dtype"):
        store.values_array()


@pytest.mark.parametrize("value", [b"raw", 5, None, ["a"], bytearray(b"x")], ids=repr)
def test_what_is_no_text_is_refused(tmp_path: Path, value: Any) -> None:
    for values in ([value], ["a", value], np.array(["a", value], object)):
        with pytest.raises(TypeError, match=r"'str' takes str|missing"):
            mphfstore.build(tmp_path / "s", (keys_for(values), values), values="str")
    with mphfstore.Builder(tmp_path / "s", values="str") as builder, pytest.raises(TypeError):
        builder.add("a", value)


def test_arrays_of_text(make: Make) -> None:
    assert make((["a", "b"], np.array(["ä", "bc"])), values="str").get_many(["a", "b"]) == ["ä", "bc"]
    with pytest.raises(TypeError, match="give its dtype"):
        make((["a"], np.array([b"x"])), values="str")
    with pytest.raises(TypeError, match="give its dtype"):
        make((["a"], np.array([1])), values="str")


@pytest.mark.parametrize("kind", ["str", "json", "bytes"])
@pytest.mark.parametrize("values", ["abc", b"abc", {"a": 1, "b": 2, "c": 3}], ids=repr)
def test_a_single_value_is_no_batch(tmp_path: Path, kind: str, values: Any) -> None:
    with mphfstore.Builder(tmp_path / "s", values=kind) as builder, pytest.raises(TypeError):
        builder.add_many(["x", "y", "z"], values)


class Subclass(str):
    def encode(self, *arguments: Any) -> bytes:
        raise AssertionError("not asked")


def test_subclasses_of_str_are_their_text(make: Make) -> None:
    assert type(make({"a": Subclass("ä")}, values="str")["a"]) is str


@pytest.mark.parametrize("kind", ["str", "json"])
def test_lone_surrogates_are_refused(tmp_path: Path, kind: str) -> None:
    for values in (["\ud800"], ["ok", "a\udfff"]):
        with pytest.raises(UnicodeEncodeError):
            mphfstore.build(tmp_path / "s", (keys_for(values), values), values=kind)
    assert names_in(tmp_path) == []


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), [-float("inf")], {"a": float("nan")}, {1: 2}, [{None: 1}], {(1,): 2}, b"raw", {1, 2},
     object(), 1j, np.int64(5), np.float32(1), LOOP],
    ids=described,
)  # fmt: skip
def test_what_is_no_json_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        mphfstore.build(tmp_path / "s", {"a": 1, "b": value}, values="json")
    assert names_in(tmp_path) == []


def test_null_is_a_value(make: Make) -> None:
    store = make({"a": None, "b": {"c": None}}, values="json", keys="exact")
    assert store["a"] is None and store.get("a", 5) is None and "a" in store
    assert store == {"a": None, "b": {"c": None}} and store != {"a": 0, "b": {"c": None}}


def test_text_of_one_width_has_no_offsets(make: Make) -> None:
    store = make({"a": "xä", "b": "yyy"}, values="str")
    assert store.info()["value_width"] == 3 and store.get_many(["a", "b"]) == ["xä", "yyy"] == [store["a"], store["b"]]


def test_long_and_empty_values(make: Make) -> None:
    values = ["", "x" * 1_000_000, "y" * 3_000_001, "", "z"]
    for packing in PACKINGS:
        store = make((keys_for(values), values), values="str", **packing)
        assert store.get_many(keys_for(values)) == [store[key] for key in keys_for(values)] == values
        assert sorted(store.values()) == sorted(values)
        store.verify()


@pytest.mark.parametrize("kind", ["str", "json"])
def test_bytes_that_are_no_text_are_a_format_error(tmp_path: Path, kind: str) -> None:
    for values in (["abc", "xyz"], ["abcd", "xyz"]):
        mphfstore.build(tmp_path / "s", (["a", "b"], values), values=kind, keys="exact", seed=1)
        data = (tmp_path / "s").read_bytes()
        section = 17 if 17 in sections_of(data) else 19
        for damage in (b"\xff" * len(sections_of(data)[section]), b"[" * len(sections_of(data)[section])):
            if kind == "json" or damage[0] > 127:
                store = mphfstore.open(with_section(data, section, damage))
                for ask in (lambda: store["a"], lambda: store.get_many(["a"]), lambda: list(store.values())):  # noqa: B023
                    with pytest.raises(FormatError) as caught:
                        ask()
                    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_keys_that_are_no_text_are_a_format_error(tmp_path: Path) -> None:
    mphfstore.build(tmp_path / "s", {"abc": b"1"}, keys="exact", seed=1)
    store = mphfstore.open(with_section((tmp_path / "s").read_bytes(), 20, b"\xff\xff\xff"))
    with pytest.raises(FormatError, match="UTF-8"):
        list(store)


# --- equal values once ---


def test_equal_values_are_stored_once(make: Make) -> None:
    values = [b"value %d" % (i % 7) * 20 for i in range(5000)]
    plain, once = make((keys_for(values), values)), make((keys_for(values), values), dedupe=True)
    assert once.info()["distinct_values"] == 7 and plain.info()["distinct_values"] is None
    assert once.info()["file_size"] < plain.info()["file_size"] / 20
    assert once.get_many(keys_for(values)) == [once[key] for key in keys_for(values)] == values


def test_one_value_for_all(make: Make) -> None:
    store = make(dict.fromkeys(keys_for(range(1000)), b"the same, of one width"), dedupe=True)
    assert store.info()["distinct_values"] == 1 and store.info()["sections"]["ordinals"] == 8
    assert set(store.get_many(keys_for(range(1000)))) == {b"the same, of one width"} and store["k5"] == store["k7"]


def test_values_that_are_all_different_stay_as_they_were(tmp_path: Path) -> None:
    values = {f"k{i}": f"{i} and more" for i in range(500)}
    for name, dedupe in (("plain", False), ("once", True)):
        mphfstore.build(tmp_path / name, values, values="str", dedupe=dedupe, seed=1)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "once").read_bytes()


@pytest.mark.parametrize("values", [[], [b""], [b""] * 5, [b"", b"x" * 99, b"x" * 99, b""], [b"a"] * 3 + [b"b" * 9]])
def test_few_values(make: Make, values: list[bytes]) -> None:
    store = make((keys_for(values), values), dedupe=True)
    assert store.get_many(keys_for(values)) == [store[key] for key in keys_for(values)] == values


def test_equal_hashes_do_not_make_equal_values(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forced:
        def __getattr__(self, name: str) -> Any:
            return getattr(genuine, name)

        def mphf_hash_batch(self, keys: Any, seed: int, hi: Any, lo: Any) -> None:
            genuine.mphf_hash_batch(keys, seed, hi, lo)
            for i in range(keys.count):
                hi[i] = lo[i] = i % 2

    genuine = _strings.lib
    monkeypatch.setattr(_strings, "lib", Forced())
    values = [b"%04d" % (i % 10) * 50 for i in range(300)]
    store = make((keys_for(values), values), dedupe=True)
    assert store.info()["distinct_values"] == 10 and store.get_many(keys_for(values)) == values


@given(values=st.lists(st.sampled_from([b"", b"a" * 40, b"b" * 41, b"c" * 39]), max_size=60))
def test_the_reference_numbers_values_the_same(tmp_path_factory: pytest.TempPathFactory, values: list[bytes]) -> None:
    path, keys = tmp_path_factory.mktemp("once") / "s", keys_for(values)
    mphfstore.build(path, (keys, values), dedupe=True, method="rotation", leaf_size=5, bucket_size=5, seed=9)
    data = path.read_bytes()
    reader = reference.Reader(data)
    built = reference.build(
        [(key.encode(), value) for key, value in zip(keys, values, strict=True)],
        params=reference.Params("rotation", 5, *reader.params.fanouts[:2]), bucket_size=5, seed=9, fingerprint_bits=16,
        kind=3, schema=reader.schema,
    )  # fmt: skip
    assert built == data


# --- rates ---


@pytest.mark.parametrize(
    ("rate", "bits"),
    [
        (1, 0),
        (0.6, 1),
        (0.5, 1),
        (0.49, 2),
        (0.01, 7),
        (0.001, 10),
        (2.0**-16, 16),
        (2.0**-16 * 0.999, 17),
        (2.0**-32, 32),
    ],
)
def test_the_fewest_bits_that_keep_a_rate(make: Make, rate: float, bits: int) -> None:
    assert make({"a": b""}, false_positive_rate=rate).info()["fingerprint_bits"] == bits
    assert mphfstore.Filter.build(["a"], false_positive_rate=rate).info()["fingerprint_bits"] == bits
    assert make({"a": b""}, keys="exact", false_positive_rate=rate).info()["fingerprint_bits"] == bits


def test_defaults_of_fingerprint_bits(make: Make) -> None:
    assert make({"a": b""}).info()["fingerprint_bits"] == 16
    assert mphfstore.Filter.build(["a"]).info()["fingerprint_bits"] == 8
    assert make({"a": b""}, keys="exact").info()["fingerprint_bits"] == 8
    assert make((np.arange(3), [b""] * 3), keys="exact").info()["fingerprint_bits"] == 0
    for wrong in ({"fingerprint_bits": 8, "false_positive_rate": 0.1}, {"false_positive_rate": 0}):
        with pytest.raises(ValueError, match="false_positive_rate"):
            mphfstore.Filter.build(["a"], **wrong)  # type: ignore[arg-type]
