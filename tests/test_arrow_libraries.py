"""Arrays of pyarrow and polars as keys and values, and results as pyarrow arrays; skipped where they are missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mphfstore as ms

pa = pytest.importorskip("pyarrow")

Make = Callable[..., ms.Store]
RECORDS = {f"key {i}" * (i % 4): b"value %d" % i * (i % 5) for i in range(2000) if i % 4 or i == 0}
ASKED = [key for pair in zip(RECORDS, [f"absent {i}" for i in range(2000)]) for key in pair]  # noqa: B905
TYPES = {
    "string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view(), "binary": pa.binary(),
    "large_binary": pa.large_binary(), "binary_view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
}  # fmt: skip


def texts(name: str, items: list[Any]) -> Any:
    if name == "dictionary":
        return pa.array(items, pa.string()).dictionary_encode()
    return pa.array(items, pa.string()).cast(TYPES[name])


@pytest.mark.parametrize("name", TYPES)
def test_strings_of_pyarrow_are_keys_as_a_list_is(name: str, make: Make, tmp_path: Path) -> None:
    store = make(RECORDS, fingerprint_bits=32, seed=1)
    values = list(RECORDS.values())
    ms.build(tmp_path / "s", (texts(name, list(RECORDS)), pa.array(values, pa.binary())), fingerprint_bits=32, seed=1)
    assert (tmp_path / "s").read_bytes() == store.to_bytes()
    keys = texts(name, ASKED)
    cut = texts(name, [None, *ASKED, "key 1"])[1:-1]
    chunks = pa.chunked_array([keys[:1000], keys[1000:1000], keys[1000:]])
    for batch in (keys, cut, chunks):
        assert np.array_equal(store.index_many(batch), store.index_many(ASKED))
        assert np.array_equal(store.contains_many(batch), store.contains_many(ASKED))
        assert store.get_many(batch, None) == store.get_many(ASKED, None)
        assert store.get_arrow(batch).to_pylist() == store.get_many(ASKED, None)
    function = ms.MPHF.build(texts(name, list(RECORDS)), seed=1)
    assert sorted(function.index_many(texts(name, list(RECORDS)))) == list(range(len(RECORDS)))
    nulls = texts(name, ["key 1", None, "", None])
    assert store.contains_many(nulls).tolist() == [True, False, True, False]
    assert store.get_arrow(nulls[1:]).to_pylist() == [None, RECORDS[""], None]


@given(st.lists(st.none() | st.text(max_size=14), max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_any_slice(tmp_path_factory: pytest.TempPathFactory, items: list[str | None], begin: int, size: int) -> None:
    stored = list(dict.fromkeys(item for item in items if item is not None))
    path = tmp_path_factory.mktemp("slices") / "s"
    ms.build(path, (stored, np.arange(len(stored))), values="i8", fingerprint_bits=32)
    store = ms.open(path)
    expected = [None if item is None else stored.index(item) for item in items[begin : begin + size]]
    for name in TYPES:
        batch = texts(name, items)[begin : begin + size]
        assert store.get_arrow(batch).to_pylist() == expected, name
        assert store.get_many(batch, -1).tolist() == [-1 if item is None else item for item in expected], name


def test_fixed_size_binary_and_integers(make: Make) -> None:
    store = make({b"abc": b"1", b"a\0\0": b"2"})
    assert store.get_many(pa.array([b"a\0\0", None, b"abc"], pa.binary(3))[0:3], b"-") == [b"2", b"-", b"1"]
    numbers = make((pa.array([5, 7, -1]), pa.array([1.5, 2.5, 3.5])), values="f8")
    assert numbers.info()["key_type"] == "<i8"
    for kind in (pa.int8(), pa.int32(), pa.int64()):
        assert numbers.get_arrow(pa.array([7, None, -1, 100], kind)).to_pylist() == [2.5, None, 3.5, None]
    wide = pa.chunked_array([pa.array([7], pa.uint64()), pa.array([2**64 - 1, 5], pa.uint64())])
    assert numbers.contains_many(wide).tolist() == [True, False, True]
    with pytest.raises(TypeError, match="float64"):
        numbers.get_many(pa.array([1.0]))


def test_tables_are_refused(make: Make, tmp_path: Path) -> None:
    table = pa.table({"a": ["x"], "b": ["y"]})
    for batch in (table, table.to_batches()[0]):
        with pytest.raises(TypeError, match="a table"):
            make({"a": b"1"}).get_many(batch)
    with pytest.raises(TypeError, match="a table"):
        ms.build(tmp_path / "s", table, values=None)


VALUES: list[tuple[Any, list[Any], Any]] = [
    ("?", [True, False], pa.bool_()),
    ("i1", [-128, 127], pa.int8()),
    ("<u8", [2**64 - 1, 0], pa.uint64()),
    ("f2", [1.5, float("inf")], pa.float16()),
    ("f8", [0.1, -0.0], pa.float64()),
    ("S4", [b"ab", b""], pa.large_binary()),
    ("U4", ["äb", ""], pa.large_string()),
    ("V2", [b"a\0", b"\0\0"], pa.large_binary()),
    ("M8[D]", ["2020-01-01", "1960-12-31"], pa.date32()),
    ("M8[us]", ["2020-01-01T00:00:01", "1960-12-31"], pa.timestamp("us")),
    ("m8[us]", [5, -5], pa.duration("us")),
    ([("x", "i4"), ("y", [("z", "S2")])], [(1, (b"a",)), (-1, (b"",))],
     pa.struct({"x": pa.int32(), "y": pa.struct({"z": pa.large_binary()})})),
    ([("m", "f4", (2, 3))], [(np.arange(6.0).reshape(2, 3),), (np.ones((2, 3)),)],
     pa.struct({"m": pa.list_(pa.list_(pa.float32(), 3), 2)})),
    ("bytes", [b"", b"longer"], pa.large_binary()),
    ("bytes", [b"same", b"size"], pa.large_binary()),
    ("bytes", [b"", b""], pa.large_binary()),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "arrow"), VALUES, ids=str)
def test_values_as_arrow(kind: Any, values: list[Any], arrow: Any, make: Make) -> None:
    column = values if kind == "bytes" or isinstance(kind, list) else np.array(values, kind)
    store = make((["a", "b"], column), values=kind, fingerprint_bits=32)
    result = store.get_arrow(["b", "?", "a", "b"])
    assert isinstance(result, pa.Array) and result.type == arrow
    result.validate(full=True)
    assert result.null_count == 1 and not result[1].is_valid
    whole = store.get_arrow(["a", "b"])
    assert whole.null_count == 0 and whole.type == arrow
    whole.validate(full=True)
    got = store.get_many(["a", "b"])
    rows = [_plain(row) for row in got]
    assert [_plain(row) for row in whole.to_pylist()] == rows
    nothing = store.get_arrow([])
    assert nothing.type == arrow and len(nothing) == 0


def _plain(value: Any) -> Any:
    """A value of numpy or Arrow so that they compare."""
    if isinstance(value, np.void) and value.dtype.names is not None:
        return {name: _plain(value[name]) for name in value.dtype.names}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | list):
        return [_plain(item) for item in value]
    if isinstance(value, np.void):
        return value.tobytes()
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"dedupe": True}, {"keys": "exact"}], ids=str)
@pytest.mark.parametrize("kind", ["bytes", "str", "json"])
def test_stored_strings_as_arrow(kind: str, options: dict[str, Any], make: Make) -> None:
    if "compression" in options:
        pytest.importorskip("zstandard")
    values: list[Any] = [f"wert {i % 7} ä" * (i % 50) for i in range(3000)]
    if kind == "bytes":
        values = [value.encode() for value in values]
    elif kind == "json":
        values = [{"a": value} if i % 3 else None for i, value in enumerate(values)]
    keys = [f"k{i}" for i in range(3000)]
    store = make((keys, values), values=kind, **options)
    expected = values if kind != "json" else [json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in values]
    asked = store.get_arrow(pa.array([*keys[::-1], None]))
    assert asked.to_pylist() == [*expected[::-1], None]
    assert asked.type == (pa.large_binary() if kind == "bytes" else pa.large_string())


def test_text_of_a_damaged_file_is_no_arrow_string(make: Make) -> None:
    data = bytearray(make({"a": "äää"}, values="str").to_bytes())
    data[data.rindex("äää".encode())] = 0xFF
    with pytest.raises(ms.FormatError, match="UTF-8"):
        ms.open(bytes(data)).get_arrow(["a"])


def test_str_values_and_exact_keys_from_arrow(make: Make, tmp_path: Path) -> None:
    keys, texts = ["a", "ä", ""], ["", "鍵", "x"]
    for asked in (pa.array(keys), pa.array(keys).dictionary_encode(), pa.array(keys, pa.large_string())):
        store: Any = make((asked, pa.array(texts)), values="str", keys="exact")
        assert dict(store) == dict(zip(keys, texts, strict=True))
    raw: Any = make((pa.array(keys, pa.binary()), pa.array(texts)), values="str", keys="exact")
    assert set(raw) == {key.encode() for key in keys}
    assert raw.get_many(pa.array([*keys, "absent"]), None) == [*texts, None]
    for column, kind in ((pa.array([b"a"] * 3), "str"), (pa.array(texts), "bytes"), (pa.array(texts), "json")):
        with pytest.raises(TypeError, match="values="):
            ms.build(tmp_path / "s", (keys, column), values=kind)
    with pytest.raises(ValueError, match="record 1 is null"):
        ms.build(tmp_path / "s", (keys, pa.array(["a", None, "b"])), values="str")


def test_not_a_time_is_null_and_not_a_number_is_not(make: Make) -> None:
    times = make((["a"], np.array(["NaT"], "M8[s]")), values="M8[s]")
    assert times.get_arrow(["a"]).null_count == 1
    numbers = make((["a"], np.array([np.nan])), values="f8")
    assert numbers.get_arrow(["a"]).null_count == numbers.get_arrow(["a", "?"]).null_count - 1 == 0


@pytest.mark.parametrize("dtype", ["c8", "M8[h]", "m8[D]"])
def test_what_arrow_does_not_have(dtype: str, make: Make) -> None:
    store = make((["a"], np.zeros(1, dtype)), values=dtype)
    with pytest.raises(TypeError, match="Arrow has no type"):
        store.get_arrow(["a"])


def test_a_store_of_no_values_has_none_to_give(make: Make) -> None:
    with pytest.raises(TypeError, match="no values"):
        make(["a"], values=None).get_arrow(["a"])


@pytest.mark.parametrize("values", ["variable", "fixed", "i8"])
def test_long_batches_are_the_same_on_threads(values: str, make: Make) -> None:
    count = 200_000
    keys = pa.array([f"k{i}" for i in range(count)])
    column: Any = np.arange(count)
    if values != "i8":
        column = [b"%d" % (i * 7) if values == "variable" else b"%08d" % i for i in range(count)]
    store = make((keys, column), values="i8" if values == "i8" else "bytes", preset="quick")
    expected = column if isinstance(column, list) else column.tolist()
    for threads in (1, 2, 5, None):
        assert store.get_arrow(keys, threads=threads).to_pylist() == expected
        assert list(store.get_many(keys, threads=threads)) == expected


def test_polars(make: Make, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    store = make(RECORDS, fingerprint_bits=32)
    for series in (
        pl.Series(ASKED),
        pl.Series(ASKED[:9]).append(pl.Series(ASKED[9:])),
        pl.Series(ASKED, dtype=pl.Categorical),
    ):
        assert store.get_many(series, None) == store.get_many(ASKED, None)
    assert store.contains_many(pl.Series(["key 1", None, ""])).tolist() == [True, False, True]
    ms.build(tmp_path / "s", (pl.Series(list(RECORDS)), pl.Series(range(len(RECORDS)))), values="u4")
    assert ms.open(tmp_path / "s").get_many(pl.Series(list(RECORDS))[5:]).tolist() == list(range(5, len(RECORDS)))
    frame = pl.DataFrame({"key": ASKED})
    joined = frame.with_columns(value=pl.Series(store.get_arrow(frame["key"])))
    assert joined["value"].to_list() == store.get_many(ASKED, None)
    with pytest.raises(TypeError, match="a table"):
        store.get_many(frame)
