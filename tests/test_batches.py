"""Batches of every source against the list of the same keys; results in the caller's arrays; threads."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import python
from hypothesis import given
from hypothesis import strategies as st

import mphfstore as ms
from mphfstore import _batch
from mphfstore._batch import CHUNK, run, thread_count

Make = Callable[..., ms.Store]
COUNT = 3 * CHUNK + 100


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> ms.Store:
    """Key "k<i>" has value i * i."""
    path = tmp_path_factory.mktemp("numbers") / "s"
    keys, values = np.char.mod("k%d", np.arange(COUNT)), np.arange(COUNT) ** 2
    ms.build(path, (keys, values), values="i8", preset="quick", fingerprint_bits=32)
    store = ms.open(path)
    assert isinstance(store, ms.Store)
    return store


def string_dtype(**options: Any) -> Any:
    dtypes = getattr(np, "dtypes", None)
    if not hasattr(dtypes, "StringDType"):
        pytest.skip("StringDType is numpy 2's")
    return dtypes.StringDType(**options)


# --- sources ---

TEXTS = ["", "a", "b", "schlüssel", "鍵", "🔑🔑", "a\0b", "\x7f\x80\u07ff\u0800\uffff\U00010000\U0010ffff", "x" * 300]


@pytest.mark.parametrize("dtype", ["<U300", ">U300", "O", "S", "T", "strided"])
def test_arrays_of_strings_are_what_their_list_is(dtype: str, make: Make, tmp_path: Path) -> None:
    texts = [text for text in TEXTS if text.isascii()] if dtype == "S" else TEXTS
    store = make({text: text.encode() for text in texts}, fingerprint_bits=32, seed=5)
    if dtype == "T":
        array: Any = np.array(texts, string_dtype())
    elif dtype == "strided":
        array = np.array([part for text in texts for part in (text, "?")])[::2]
    else:
        array = np.array(texts, dtype)
    assert store.get_many(array) == store.get_many(texts) == [text.encode() for text in texts]
    assert store.contains_many(array[::-1]).all() and not store.contains_many([text + "!" for text in texts]).any()
    ms.build(tmp_path / "s", (array, [text.encode() for text in texts]), fingerprint_bits=32, seed=5)
    assert (tmp_path / "s").read_bytes() == store.to_bytes()


@given(st.lists(st.text(max_size=12), max_size=30))
def test_text_becomes_utf8(texts: list[str]) -> None:
    texts = [text.rstrip("\0") for text in texts]
    batch = ms._keys.BytesKeys().batch(np.array(texts, "U12"))
    assert [batch[i] for i in range(len(batch))] == [text.encode() for text in texts]


@pytest.mark.parametrize("code", [0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF])
def test_what_is_no_text_is_refused(code: int, make: Make) -> None:
    array = np.array(["fine", "ab", "cd"])
    array.view("u4").reshape(3, -1)[1, 1] = code
    with pytest.raises(ValueError):  # a UnicodeEncodeError, or numpy's
        make({"a": b"1"}).get_many(array)


def test_a_missing_string_is_no_key(make: Make) -> None:
    dtype = string_dtype(na_object=None)
    with pytest.raises(TypeError, match="bytes or str, not NoneType"):
        make({"a": b"1"}).get_many(np.array(["a", None], dtype))


INTEGERS = [
    -(2**63),
    -300,
    -129,
    -128,
    -1,
    0,
    1,
    127,
    128,
    255,
    256,
    32767,
    65536,
    2**31,
    2**32,
    2**63 - 1,
    2**63,
    2**64 - 1,
]


@pytest.mark.parametrize("kept", ["i1", "u1", "i2", "u4", "i8", "u8"])
@pytest.mark.parametrize("asked", ["i1", "u1", ">i2", "i4", "u4", "i8", ">u8"])
def test_integers_that_the_dtype_does_not_have_are_absent(kept: str, asked: str, make: Make) -> None:
    def within(dtype: str) -> list[int]:
        return [i for i in INTEGERS if np.iinfo(dtype).min <= i <= np.iinfo(dtype).max]

    store = make([(i, b"%d" % i) for i in within(kept)], key_dtype=kept, fingerprint_bits=32)
    keys = np.array(within(asked), asked)
    expected = [b"%d" % i if i in within(kept) else b"-" for i in within(asked)]
    assert store.get_many(keys, b"-") == store.get_many(within(asked), b"-") == expected
    assert store.contains_many(keys[::-1]).tolist() == [one != b"-" for one in expected[::-1]]
    if b"-" in expected:
        with pytest.raises(KeyError):
            store.get_many(keys)


def test_batches_of_any_length(numbers: ms.Store) -> None:
    keys = np.char.mod("k%d", np.arange(COUNT))
    for length in (0, 1, 31, 33, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, COUNT):
        for array in (keys[:length], keys[:length].astype("S"), keys[:length].tolist()):
            assert np.array_equal(numbers.get_many(array), np.arange(length) ** 2)
            assert np.array_equal(np.sort(numbers.index_many(array)), np.sort(numbers.index_many(keys)[:length]))


# --- out ---


def test_results_go_to_the_arrays_given(numbers: ms.Store) -> None:
    keys = ["k1", "absent", "k3"]
    whole = np.full((3, 5), 7)
    indices, found, values = np.full(3, 7), np.full(3, False), whole[1, 1:4]
    assert numbers.index_many(keys, out=indices) is indices
    assert numbers.contains_many(keys, out=found) is found
    assert numbers.get_many(keys, -1, out=values) is values
    assert indices.tolist() == numbers.index_many(keys).tolist() and found.tolist() == [True, False, True]
    assert whole.tolist() == [[7] * 5, [7, 1, -1, 9, 7], [7] * 5]
    with pytest.raises(KeyError, match="absent"):
        numbers.get_many(keys, out=np.empty(3, "i8"))
    empty = np.empty(0, "i8")
    assert numbers.get_many([], out=empty) is empty
    function = ms.MPHF.build(["a", "b"])
    two = np.full(2, 7)
    assert function.index_many(["b", "a"], out=two) is two and sorted(two) == [0, 1]


READ_ONLY = np.empty(3, "i8")
READ_ONLY.flags.writeable = False
WRONG: list[tuple[Any, type[Exception], str]] = [
    ([0, 0, 0], TypeError, "an array, not list"),
    (bytearray(24), TypeError, "an array, not bytearray"),
    (np.empty(3, ">i8"), TypeError, "int64, not >i8"),
    (np.empty(3, "u8"), TypeError, "int64, not uint64"),
    (np.empty(3, "O"), TypeError, "int64, not object"),
    (np.empty(4, "i8"), ValueError, r"\(3,\), not \(4,\)"),
    (np.empty((3, 1), "i8"), ValueError, r"\(3,\), not \(3, 1\)"),
    (np.empty((), "i8"), ValueError, r"not \(\)"),
    (np.empty(6, "i8")[::2], ValueError, "contiguous"),
    (np.empty(25, "u1")[1:].view("i8"), ValueError, "aligned"),
    (READ_ONLY, ValueError, "writeable"),
]


@pytest.mark.parametrize(("out", "error", "said"), WRONG, ids=[said for _, _, said in WRONG])
def test_arrays_that_do_not_fit_are_refused_before_anything_is_written(
    out: Any, error: type[Exception], said: str, numbers: ms.Store
) -> None:
    before = bytes(out) if not isinstance(out, list | np.ndarray) else np.array(out).tolist()
    for ask in (numbers.get_many, numbers.index_many, ms.MPHF.build(["k1"]).index_many):
        with pytest.raises(error, match=said):
            ask(["k1", "k2", "k3"], out=out)
    assert before == (bytes(out) if not isinstance(out, list | np.ndarray) else np.array(out).tolist())


def test_out_has_the_dtype_of_the_result(make: Make) -> None:
    point = np.dtype([("x", "<f4"), ("y", "S2")])
    store = make((["a", "b"], np.array([(1, b"p"), (2, b"q")], point)), values=point)
    out = np.zeros(3, point)
    assert store.get_many(["b", "?", "a"], (9, b"r"), out=out).tolist() == [(2, b"q"), (9, b"r"), (1, b"p")]
    with pytest.raises(TypeError, match="bool"):
        store.contains_many(["a"], out=np.zeros(1, "u1"))
    with pytest.raises(TypeError, match="dtype"):
        store.get_many(["a"], out=np.zeros(1, [("x", "<f4"), ("z", "S2")]))
    with pytest.raises(TypeError, match="numpy dtype, which this store's are not"):
        make({"a": b"1"}).get_many(["a"], out=np.zeros(1))


def test_out_may_be_the_memory_of_the_keys(make: Make) -> None:
    keys = np.arange(1000)
    store = make((keys, keys[::-1].copy()), values="i8", fingerprint_bits=32)
    for shift in (0, 1, 500):
        memory = np.zeros(2000, "i8")
        asked, out = memory[:1000], memory[shift : 1000 + shift]
        for ask, expected in ((store.get_many, keys[::-1]), (store.index_many, store.index_many(keys))):
            asked[:] = keys
            assert np.array_equal(ask(asked, out=out), expected), shift
    flags = np.arange(1000, dtype="u1").view(bool)
    bytewise = make((np.arange(200, dtype="u1"), np.arange(200)), values="i8", fingerprint_bits=32)
    expected = bytewise.contains_many(flags.view("u1"))
    assert np.array_equal(bytewise.contains_many(flags.view("u1"), out=flags), expected)


# --- threads ---


def test_threads_change_no_answer(numbers: ms.Store) -> None:
    keys = np.char.mod("k%d", np.random.default_rng(3).integers(0, 2 * COUNT, 2 * COUNT))
    function = ms.MPHF.build(np.arange(COUNT), preset="quick")
    asked = np.random.default_rng(4).integers(0, COUNT, COUNT)
    for batch in (keys, keys.astype("S"), keys.tolist()):
        expected = [ask(batch, threads=1) for ask in (numbers.index_many, numbers.contains_many)]
        values = numbers.get_many(batch, -5, threads=1)
        for threads in (2, 3, 50, None):
            assert np.array_equal(numbers.index_many(batch, threads=threads), expected[0])
            assert np.array_equal(numbers.contains_many(batch, threads=threads), expected[1])
            assert np.array_equal(numbers.get_many(batch, -5, threads=threads), values)
    for threads in (2, None):
        assert np.array_equal(function.index_many(asked, threads=threads), function.index_many(asked, threads=1))


def test_the_first_absent_key_is_named_whatever_thread_sees_it(numbers: ms.Store) -> None:
    keys = [f"k{i}" for i in range(COUNT)]
    for places in ([CHUNK + 5, 2 * CHUNK], [COUNT - 1], [3, COUNT - 1]):
        asked = list(keys)
        for place in places:
            asked[place] = f"absent {place}"
        for threads in (1, 4):
            with pytest.raises(KeyError, match=f"absent {places[0]}'"):
                numbers.get_many(asked, threads=threads)


@pytest.mark.parametrize("threads", [0, -1])
def test_the_number_of_threads_is_positive(threads: int, numbers: ms.Store) -> None:
    for ask in (numbers.get_many, numbers.contains_many, numbers.index_many, ms.MPHF.build(["k1"]).index_many):
        with pytest.raises(ValueError, match="threads is at least 1"):
            ask(["k1"], threads=threads)


def test_short_batches_start_no_thread(numbers: ms.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_batch.os, "sched_getaffinity", lambda _: set(range(4)))
    assert [thread_count(None, n * CHUNK) for n in (0, 1, 2, 3, 4, 100)] == [1, 1, 2, 3, 4, 4]
    assert thread_count(7, 1) == 7
    monkeypatch.setattr(_batch.threading, "Thread", None)
    assert numbers.contains_many([f"k{i}" for i in range(CHUNK)]).all()
    assert numbers.contains_many([f"k{i}" for i in range(CHUNK)], threads=8).all()


def test_a_failing_task_stops_the_others_and_is_raised() -> None:
    begun: list[int] = []

    def task(number: int) -> None:
        begun.append(number)
        time.sleep(0.001)
        if number == 5:
            raise OverflowError(number)

    for threads in (1, 3):
        begun.clear()
        with pytest.raises(OverflowError, match="5"):
            run([lambda number=number: task(number) for number in range(500)], threads)  # type: ignore[misc]
        assert 5 in begun and len(begun) < 100
    assert threading.active_count() == 1


def test_without_further_threads_the_first_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    class Exhausted(threading.Thread):
        begun = itertools.count()

        def start(self) -> None:
            if next(self.begun):
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(_batch.threading, "Thread", Exhausted)
    done: list[int] = []
    run([lambda number=number: done.append(number) for number in range(100)], 8)  # type: ignore[misc]
    assert sorted(done) == list(range(100))


def test_an_interrupt_ends_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def task(number: int) -> None:
        begun.append(number)
        if number == 3:
            signal.raise_signal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        while True:  # until the main thread has number 3
            run([lambda number=number: task(number) for number in range(200)], 2)  # type: ignore[misc]
    assert threading.active_count() == 1


HOSTILE_END = """
import atexit, sys, numpy as np, mphfstore as ms
store = ms.open(sys.argv[1])
keys = np.char.mod("k%d", np.arange(300_000))
atexit.register(lambda: print(int(store.contains_many(keys, threads=4).sum())))
"""


def test_batches_are_answered_while_the_interpreter_ends(numbers: ms.Store, tmp_path: Path) -> None:
    numbers.save(tmp_path / "s")
    done = python(HOSTILE_END, tmp_path / "s")
    assert (done.stdout, done.stderr) == (f"{COUNT}\n", "")


def test_a_damaged_store_says_so_from_any_thread(tmp_path: Path) -> None:
    keys = np.arange(COUNT)
    ms.build(tmp_path / "s", (keys, [b"v" * (i % 3) for i in range(COUNT)]), preset="quick", seed=1)
    store = ms.open(tmp_path / "s")

    opened = store._current()

    def corrupt(*arguments: Any) -> None:
        opened._checked(-6)

    parts = opened.keys.parts(keys)
    for threads in (1, 3):
        with pytest.raises(ms.FormatError, match="contradicts itself"):
            _batch.look_up(corrupt, parts, threads, into=np.empty(COUNT, np.int64))
