"""Handles closed by one thread and used by another, views, forks; builds on several threads."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from conftest import names_in, python

import mphfstore as ms
from mphfstore._lookup import Reader

KEYS = ["a", "b", "c"]
COLUMNS: dict[str, tuple[Any, Any]] = {
    "bytes": ("bytes", [b"1", b"22", b""]),
    "bytes of one width": ("bytes", [b"11", b"22", b"33"]),
    "integers": ("<u4", [1, 2, 3]),
    "strings": ("S2", [b"x", b"yy", b""]),
    "none": (None, None),
}
ASKS: dict[str, Callable[[Any], Any]] = {
    "[]": lambda store: store["b"],
    "get": lambda store: store.get("b", "absent"),
    "get_many": lambda store: list(store.get_many(KEYS)),
    "get_many absent": lambda store: [str(value) for value in store.get_many(["a", "absent"], 7)],
    "values_array": lambda store: store.values_array().tolist(),
    "get absent": lambda store: store.get("absent", "absent"),
    "get_view": lambda store: bytes(store.get_view("b")),
    "in": lambda store: "b" in store,
    "contains_many": lambda store: store.contains_many(KEYS).tolist(),
    "index_many": lambda store: store.index_many(KEYS).tolist(),
    "bits_per_key": lambda store: store.bits_per_key,
    "info": lambda store: store.info(),
    "to_bytes": lambda store: store.to_bytes(),
    "verify": lambda store: store.verify(),
}
OF_VALUES = [*list(ASKS)[:5], "get_view"]
# Without any instruction of Python: native/fastpath.c. tests/test_fastpath.py runs this file on the other path, too.
AT_ONCE = {"[]", "get", "get absent", "in"} if Reader.__module__ == "mphfstore._fastpath" else set()


def outcome(ask: Callable[[Any], Any], store: Any) -> Any:
    """What an answer is, or why there is none."""
    try:
        return ask(store)
    except Exception as error:
        return type(error), "closed" if "closed" in str(error) else ""


def closed_at(step: int, ask: Callable[[Any], Any], store: Any) -> tuple[Any, bool]:
    """The outcome if another thread closes the store just before instruction `step` of the package's own code."""
    steps = itertools.count()
    reached = False

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal reached
        if "mphfstore" not in frame.f_code.co_filename or reached:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(steps) == step:
            reached = True
            with contextlib.suppress(BufferError):  # once there is a view
                store.close()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return outcome(ask, store), reached
    finally:
        sys.settrace(before)


def wrong_outcomes(data: bytes, question: str) -> list[tuple[int, Any]]:
    """At which instructions closing changes the outcome to anything but "closed", and to what."""
    ask = ASKS[question]
    right, wrong = outcome(ask, ms.open(data)), []
    for step in itertools.count():
        answer, reached = closed_at(step, ask, ms.open(data))
        if repr(answer) not in (
            repr(right),
            repr((ValueError, "closed")),
        ):  # numpy compares scalars with tuples by element
            wrong.append((step, answer))
        if not reached:
            break
    assert step > 5 or question in AT_ONCE, "nothing was traced"
    return wrong


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("question", OF_VALUES)
def test_a_value_is_right_or_the_store_closed_at_any_instant(tmp_path: Path, column: str, question: str) -> None:
    kind, values = COLUMNS[column]
    ms.build(tmp_path / "s", KEYS if values is None else (KEYS, values), values=kind, seed=1, fingerprint_bits=32)
    assert wrong_outcomes((tmp_path / "s").read_bytes(), question)[:3] == []


@pytest.mark.parametrize("question", sorted(set(ASKS) - set(OF_VALUES)))
def test_an_answer_is_right_or_the_store_closed_at_any_instant(tmp_path: Path, question: str) -> None:
    ms.build(tmp_path / "s", dict.fromkeys(KEYS, b""), seed=1, fingerprint_bits=32)
    assert wrong_outcomes((tmp_path / "s").read_bytes(), question)[:3] == []


def test_a_damaged_file_never_passes_verify_because_it_was_closed_meanwhile(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {"a": b"1", "b": b"22"})
    data = (tmp_path / "s").read_bytes()
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(ms.ChecksumError):
        ms.open(damaged).verify()
    assert wrong_outcomes(damaged, "verify")[:3] == []


@pytest.mark.parametrize("question", sorted(set(ASKS) - {"values_array"}))
def test_a_closed_store_says_so(tmp_path: Path, question: str) -> None:
    ms.build(tmp_path / "s", {"b": b"1"})
    store = ms.open(tmp_path / "s")
    store.close()
    store.close()
    assert outcome(ASKS[question], store) == (ValueError, "closed")
    assert "closed" in repr(store)


VIEWS = """
import gc, os, sys, numpy as np, mphfstore as ms
path = sys.argv[1]
with ms.open(path) as store:
    array = store.values_array()
    expected = array.copy()
    half = array[::2]
del store
os.unlink(path)
gc.collect()
assert path in open("/proc/self/maps").read()
assert np.array_equal(array, expected) and np.array_equal(half, expected[::2])
del array, half
gc.collect()
assert path not in open("/proc/self/maps").read(), "the mapping outlives its last view"
"""


def test_a_view_keeps_the_mapping_alive_and_nothing_else_does(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", (np.arange(50_000), np.arange(50_000)), values="i8", preset="quick")
    done = python(VIEWS, tmp_path / "s")
    assert (done.returncode, done.stderr) == (0, "")


def test_opening_and_closing_leaves_no_descriptors_and_no_mappings(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {"a": b"1"})
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with ms.open(tmp_path / "s") as store:
            assert store["a"] == b"1"
    (tmp_path / "t").write_bytes(b"damaged")
    for _ in range(50):
        with pytest.raises(ms.FormatError):
            ms.open(tmp_path / "t")
    del store
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


FORKS = """
import os, sys, threading, mphfstore as ms
store = ms.open(sys.argv[1])
keys = [f"k{i}" for i in range(20_000)]
expected = store.get_many(keys)
stop = threading.Event()
def busy():
    while not stop.is_set():
        assert store.get_many(keys) == expected
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(8):
    child = os.fork()
    if not child:
        os._exit(0 if store.get_many(keys) == expected and store["k7"] == expected[7] else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
assert store["k7"] == expected[7]
"""


def test_children_forked_while_threads_look_up_answer(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {f"k{i}": b"%d" % i for i in range(20_000)}, preset="quick")
    done = python(FORKS, tmp_path / "s")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("method", ["brute", "rotation"])
@pytest.mark.parametrize("keys", [1, 40_000, 140_000])
def test_threads_change_no_byte(tmp_path: Path, method: str, keys: int) -> None:
    files = set()
    for threads in (1, 2, 5, None):
        ms.build(
            tmp_path / "s", (np.arange(keys), np.arange(keys)),
            values="i8", threads=threads, seed=7, method=method, leaf_size=5, bucket_size=20,
        )  # fmt: skip
        files.add((tmp_path / "s").read_bytes())
    assert len(files) == 1


def test_builds_of_one_target_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def build(number: int) -> None:
        try:
            for _ in range(20):
                ms.build(tmp_path / "s", {f"k{i}": b"%d" % number for i in range(100)})
        except BaseException as error:
            failures.append(error)

    builders = [threading.Thread(target=build, args=(number,)) for number in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    store = ms.open(tmp_path / "s")
    store.verify()
    assert len({store[f"k{i}"] for i in range(100)}) == 1
    assert failures == []
    assert names_in(tmp_path) == ["s"]


@pytest.mark.parametrize("keys", [0, 1, 100, 70_000])
@pytest.mark.parametrize("threads", [1, 3])
def test_progress_rises_from_nothing_to_all_keys(tmp_path: Path, keys: int, threads: int) -> None:
    calls: list[tuple[int, int]] = []
    caller = set()

    def progress(done: int, total: int) -> None:
        calls.append((done, total))
        caller.add(threading.get_ident())

    ms.build(tmp_path / "s", np.arange(keys), values=None, threads=threads, progress=progress, preset="quick")
    assert calls[0] == (0, keys) and calls[-1] == (keys, keys)
    assert calls == sorted(calls)
    assert caller == {threading.get_ident()}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("call", [0, 1, 3, 4])
def test_any_exception_at_any_call_of_progress_discards_the_build(
    tmp_path: Path, error: type[BaseException], call: int
) -> None:
    (tmp_path / "s").write_bytes(b"old")
    calls = itertools.count()

    def progress(done: int, total: int) -> None:
        if next(calls) == call:
            raise error("enough")

    with pytest.raises(error, match="enough"):
        ms.build(tmp_path / "s", np.arange(70_000), values=None, threads=2, progress=progress, preset="quick")
    assert next(calls) == call + 1, "called again after an exception"
    assert (tmp_path / "s").read_bytes() == b"old" and names_in(tmp_path) == ["s"]
    assert threading.active_count() == 1


def test_a_build_on_several_threads_leaves_none_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    ms.build(tmp_path / "s", np.arange(70_000), values=None, threads=8, preset="quick")
    assert threading.active_count() == before
