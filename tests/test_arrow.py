"""Arrays of the Arrow C data interface, made by hand, so without any library: every layout, offsets, nulls, and that
everything is released. tests/test_arrow_libraries.py has those of pyarrow and polars."""

from __future__ import annotations

import gc
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capsules import Chunk, Producer
from conftest import names_in, python
from hypothesis import given
from hypothesis import strategies as st

import mphfstore as ms
from mphfstore._arrow import columns

Make = Callable[..., ms.Store]
STRINGS = ("z", "Z", "u", "U", "vz", "vu")


def bits(flags: list[bool]) -> bytes:
    return np.packbits(flags, bitorder="little").tobytes()


def strings(form: str, items: list[bytes | None], skip: int = 0) -> Chunk:
    """Strings in a format; the first `skip` are cut off by the array's offset."""
    valid = bits([item is not None for item in items]) if None in items else None
    texts = [b"" if item is None else item for item in items]
    if form.startswith("v"):
        views, long = b"", b""
        for number, (item, text) in enumerate(zip(items, texts, strict=True)):
            where = struct.pack("<4sii", text[:4], number % 2, len(long)) if len(text) > 12 else text.ljust(12, b"\0")
            views += struct.pack("<i", len(text)) + where
            long += text if len(text) > 12 else b""
            if item is None:
                views = views[:-16] + b"\xff" * 16  # a null's view says nothing
        sizes = struct.pack("<qq", len(long), len(long))
        return Chunk(form, len(items) - skip, [valid, views, long, long, sizes], offset=skip)
    if form.startswith("w:"):
        width = int(form[2:])
        data = b"".join(text.ljust(width, b"?") for text in texts)
        return Chunk(form, len(items) - skip, [valid, data], offset=skip)
    ends = np.cumsum([0, *map(len, texts)]).astype("<i8" if form in "ZU" else "<i4").tobytes()
    return Chunk(form, len(items) - skip, [valid, ends, b"".join(texts)], offset=skip)


def elements(source: Any) -> list[object]:
    read = columns(source)
    assert read is not None
    return [read.element(i) for i in range(len(read))]


ITEMS = [b"", b"a", b"twelve bytes", b"thirteen byte", None, b"x" * 1000, b"\xc3\xa4\0", b"last"]


@pytest.mark.parametrize("form", STRINGS)
@pytest.mark.parametrize("skip", [0, 1, 3, 8])
def test_strings_of_every_layout_are_read_and_released(form: str, skip: int) -> None:
    producer = Producer(strings(form, ITEMS, skip))
    expected = [item.decode() if item is not None and form[-1] in "uU" else item for item in ITEMS[skip:]]
    assert elements(producer) == expected
    gc.collect()
    assert producer.alive == [] and producer.exports == 1


@pytest.mark.parametrize("stream", [False, True])
def test_memory_lives_as_long_as_what_reads_it(stream: bool) -> None:
    producer = Producer(strings("Z", [b"ab", b"c"]), stream=stream)
    read = columns(producer)
    assert read is not None and producer.alive == ["array"]  # the schema and the stream are not needed any more
    data = read.chunks[0].data
    del read
    gc.collect()
    assert producer.alive == ["array"] and data.tobytes() == b"abc"
    assert not data.flags.writeable
    del data
    gc.collect()
    assert producer.alive == []


@given(st.lists(st.none() | st.binary(max_size=20), max_size=40), st.integers(0, 40), st.sampled_from("zZ"))
def test_any_strings_from_any_offset(items: list[bytes | None], skip: int, form: str) -> None:
    skip = min(skip, len(items))
    assert elements(Producer(strings(form, items, skip))) == items[skip:]
    assert elements(Producer(strings("vz", items, skip))) == items[skip:]


def test_strings_of_a_fixed_width(make: Make) -> None:
    producer = Producer(strings("w:3", [b"xxx", b"abc", None, b"a\0\0"], 1))
    assert elements(producer) == [b"abc", None, b"a\0\0"]
    store = make({b"abc": b"1", b"a\0\0": b"2", b"a": b"3"})
    assert store.get_many(producer, b"-") == [b"1", b"-", b"2"]
    nothing = Producer(Chunk("w:0", 2, [None, None]))
    assert elements(nothing) == [b"", b""] and not store.contains_many(nothing).any()


NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8"}


@pytest.mark.parametrize("form", NUMBERS)
def test_integers_of_every_width(tmp_path: Path, form: str) -> None:
    bounds = np.iinfo(NUMBERS[form])
    values = np.array([1, bounds.min, bounds.max, 7], NUMBERS[form])
    ms.build(tmp_path / "s", Producer(Chunk(form, 4, [None, values.tobytes()])), values=None, fingerprint_bits=32)
    store = ms.open(tmp_path / "s")
    assert store.info()["key_type"] == np.dtype(NUMBERS[form]).newbyteorder("<").str
    nulls = Producer(Chunk(form, 3, [bits([True, False, True, True]), values.tobytes()], offset=1))
    assert elements(nulls) == [None, bounds.max, 7]
    assert store.contains_many(nulls).tolist() == [False, True, True]
    wide = Producer(Chunk("l", 3, [None, np.array([1, 300_000_000_000, -(2**62)]).tobytes()]))
    assert store.contains_many(wide).tolist() == [True, False, False]


def test_places_in_a_dictionary(make: Make) -> None:
    store = make({"a": b"1", "b": b"2", "": b"3"})
    values = strings("u", [b"junk", b"a", None, b"b"], 1)
    places = np.array([9, 2, 0, 1, 77, 0], "i1").tobytes()
    keys = Producer(Chunk("c", 5, [bits([True] * 4 + [False, True]), places], offset=1, dictionary=values))
    assert elements(keys) == ["b", "a", None, None, "a"]
    assert store.get_many(keys, b"-") == [b"2", b"1", b"-", b"-", b"1"]
    assert store.index_many(keys).tolist() == store.index_many(["b", "a", "?", "?", "a"]).tolist()
    empty = Producer(Chunk("C", 2, [bits([False, False]), b"\7\7"], dictionary=strings("u", [])))
    assert elements(empty) == [None, None] and not store.contains_many(empty).any()
    numbers = Chunk("l", 2, [None, np.array([50, 60]).tobytes()])
    assert elements(Producer(Chunk("s", 3, [None, b"\1\0\0\0\1\0"], dictionary=numbers))) == [60, 50, 60]


def test_streams_of_chunks(make: Make) -> None:
    items = {f"key {i}": b"%d" % i for i in range(30)}
    store, keys = make(items), [key.encode() for key in items]
    chunks = [strings("u", keys[:7]), strings("u", []), strings("u", keys[5:20], 2), strings("u", [None, *keys[20:]])]
    producer = Producer(*chunks, stream=True)
    assert store.get_many(producer, None) == [*list(items.values())[:20], None, *list(items.values())[20:]]
    gc.collect()
    assert producer.alive == []
    with pytest.raises(KeyError) as caught:
        store.get_many(Producer(strings("u", [b"key 1"]), strings("u", [b"key 2", "schlüssel".encode()]), stream=True))
    assert caught.value.args == ("schlüssel",)
    assert store.get_many(Producer(strings("u", []), stream=True)) == []


@pytest.mark.parametrize("message", [b"no more", b"\xff", None])
def test_a_stream_that_fails_raises_what_it_says(message: bytes | None, make: Make) -> None:
    store = make({"a": b"1"})
    producer = Producer(*[strings("u", [b"a"])] * 3, stream=True, fail=2, message=message)
    with pytest.raises(OSError, match={b"no more": "no more", None: "Input/output"}.get(message, ".")) as caught:
        store.get_many(producer)
    assert caught.value.errno == 5
    del caught
    gc.collect()
    assert producer.alive == []


def test_arrays_of_nulls(make: Make, tmp_path: Path) -> None:
    nothing, empty = (Producer(Chunk("n", length, [])) for length in (3, 0))
    for store in (make({"a": b"1"}), make([(0, b"1")], key_dtype="i2")):
        assert store.index_many(nothing).tolist() == [-1] * 3
        assert store.get_many(nothing, b"-") == [b"-"] * 3 and store.get_many(empty) == []
        with pytest.raises(KeyError) as caught:
            store.get_many(nothing)
        assert caught.value.args == (None,)
    for key_dtype in (None, "i8"):
        with pytest.raises(ValueError, match="record 0 is null"):
            ms.build(tmp_path / "s", nothing, values=None, key_dtype=key_dtype)
        ms.build(tmp_path / "empty", (empty, empty), key_dtype=key_dtype)
        assert len(ms.open(tmp_path / "empty")) == 0


@pytest.mark.parametrize("build", ["MPHF", "Filter", "store", "values"])
def test_nulls_are_no_records(build: str, tmp_path: Path) -> None:
    for form, items in (("u", [b"a", b"b", None]), ("vu", [b"a", b"b", None])):
        keys = Producer(strings(form, items))
        with pytest.raises(ValueError, match="record 2 is null"):
            if build == "MPHF":
                ms.MPHF.build(keys)
            elif build == "Filter":
                ms.Filter.build(keys)
            elif build == "store":
                ms.build(tmp_path / "s", keys, values=None)
            else:
                ms.build(tmp_path / "s", (["a", "b", "c"], Producer(strings("z", items))))
    assert names_in(tmp_path) == []


def test_a_function_has_no_index_of_a_null() -> None:
    function = ms.MPHF.build(Producer(strings("u", [b"a", b"b"])))
    assert sorted(function.index_many(Producer(strings("vu", [b"a", b"b"])))) == [0, 1]
    with pytest.raises(ValueError, match="record 1 is null"):
        function.index_many(Producer(strings("u", [b"a", None])))


@pytest.mark.parametrize("form", ["f", "g", "e", "b", "tdD", "tsu:UTC"])
def test_numbers_that_are_no_integers_are_no_keys(form: str, make: Make) -> None:
    keys = Producer(Chunk(form, 2, [None, bytes(16)]))
    for store in (make({"a": b"1"}), make([(0, b"1")], key_dtype="i8")):
        with pytest.raises(TypeError, match=r"not an Arrow array of (float|bool|datetime)"):
            store.get_many(keys)
    for build in (ms.MPHF.build, ms.Filter.build):
        with pytest.raises(TypeError, match="not an Arrow array"):
            build(keys)


@pytest.mark.parametrize(
    ("form", "said"), [("+s", "a table"), ("+l", r"'\+l'"), ("d:5,2", "'d:5,2'"), ("tts", "'tts'")]
)
def test_what_is_no_column_is_refused_and_released(form: str, said: str, make: Make) -> None:
    producer = Producer(Chunk(form, 1, [None, bytes(16)]))
    with pytest.raises(TypeError, match=said) as caught:
        make({"a": b"1"}).get_many(producer)
    del caught
    gc.collect()
    assert producer.alive == []


def test_an_integer_is_never_a_string(make: Make) -> None:
    with pytest.raises(TypeError, match="bytes or str, not an Arrow array of int64"):
        make({"a": b"1"}).get_many(Producer(Chunk("l", 1, [None, bytes(8)])))
    with pytest.raises(TypeError, match=r"an integer .* not an Arrow array of string"):
        make([(1, b"1")], key_dtype="i8").get_many(Producer(strings("u", [b"1"])))
    with pytest.raises(OverflowError, match="outside"):
        ms.MPHF.build(Producer(Chunk("l", 1, [None, b"\xff" * 8])), key_dtype="u8")


@pytest.mark.parametrize("form", ["z", "Z", "vz", "w:4"])
def test_values_that_are_bytes(form: str, tmp_path: Path) -> None:
    values = [b"long", b"and ", b"shrt"] if form == "w:4" else [b"", b"1", b"longer than twelve"]
    ms.build(
        tmp_path / "s", (Producer(strings("u", [b"a", b"b", b"c"])), Producer(strings(form, [b"off!", *values], 1)))
    )
    assert ms.open(tmp_path / "s").get_many(["a", "b", "c"]) == values


@pytest.mark.parametrize(
    ("form", "data", "dtype"),
    [("g", np.array([1.5, -2.0]), "f4"), ("i", np.array([-1, 5], "i4"), "i8"), ("b", b"\2", "?"),
     ("tdD", np.array([1, -1], "i4"), "M8[D]"),
     ("tsm:", np.array([1, 10**12]), "M8[ms]"), ("tDn", np.array([5, -5]), "m8[ns]")],
)  # fmt: skip
def test_values_of_a_dtype(form: str, data: Any, dtype: str, tmp_path: Path) -> None:
    raw = data if isinstance(data, bytes) else data.tobytes()
    ms.build(tmp_path / "s", (["a", "b"], Producer(Chunk(form, 2, [None, raw]))), values=dtype)
    got = ms.open(tmp_path / "s").get_many(["a", "b"])
    expected = np.array([False, True]) if form == "b" else data.astype(dtype)
    assert got.dtype == dtype and np.array_equal(got, expected)


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    text, wide = Producer(strings("u", [b"x"])), Producer(Chunk("l", 1, [None, b"\0\0\1\0\0\0\0\0"]))
    null = Producer(Chunk("l", 1, [b"\0", bytes(8)]))
    for column, dtype, error in (
        (text, "bytes", TypeError), (text, "i8", TypeError), (text, "S4", TypeError), (wide, "bytes", TypeError),
        (wide, "u1", OverflowError), (null, "i8", ValueError), (Producer(strings("z", [])), "bytes", ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            ms.build(tmp_path / "s", (["a"], column), values=dtype)
    assert names_in(tmp_path) == []


def test_memory_of_keys_outlives_their_array_until_the_file_is_written(tmp_path: Path) -> None:
    with ms.Builder(tmp_path / "s", fingerprint_bits=32) as builder:
        for part in range(3):
            keys, values = (strings(form, [b"%d.%d" % (part, i) for i in range(100)]) for form in "Zz")
            builder.add_many(Producer(keys, stream=True), Producer(values))
            gc.collect()
    expected = [b"%d.%d" % (part, i) for part in range(3) for i in range(100)]
    assert ms.open(tmp_path / "s").get_many(expected) == expected


def test_an_object_that_cannot_export_without_a_library_is_an_iterable(make: Make) -> None:
    class Frame(list):  # type: ignore[type-arg]
        pass

    class Series:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ImportError("pyarrow is missing")

        def __iter__(self) -> Any:
            return iter(["a", "b"])

    store = make({"a": b"1", "b": b"2"})
    assert store.get_many(Series()) == store.get_many(Frame("ab")) == [b"1", b"2"]


def test_the_same_bytes_as_from_a_list(tmp_path: Path) -> None:
    keys = [b"key %d" % i for i in range(5000)]
    values = [b"v" * (i % 20) for i in range(5000)]
    ms.build(tmp_path / "list", (keys, values), seed=3)
    for form in STRINGS:
        column = Producer(strings(form, keys[:1000]), strings(form, [b"?", *keys[1000:]], 1), stream=True)
        ms.build(tmp_path / form, (column, Producer(strings("z", values))), seed=3)
        assert (tmp_path / form).read_bytes() == (tmp_path / "list").read_bytes()


def test_without_pyarrow_get_arrow_says_how_to_get_it(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {"a": b"1"})
    code = """
import sys; sys.modules["pyarrow"] = None
import mphfstore as ms
try:
    ms.open(sys.argv[1]).get_arrow(["a"])
except ms.UnavailableError as error:
    print(error)
"""
    assert python(code, tmp_path / "s").stdout == "get_arrow needs pyarrow: pip install pyarrow\n"
