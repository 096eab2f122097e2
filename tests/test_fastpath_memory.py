"""native/fastpath.c: nothing leaked, nothing freed too early."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import FAST, PLAIN, QUESTIONS, VALUES, Text, outcome

import mphfstore


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[str], Any]:
    def made(values: str) -> Any:
        kind, value = VALUES[values]
        records = {f"key {i}": value(i) for i in range(100)}
        items = list(records) if kind is None else (list(records), list(records.values()))
        mphfstore.build(tmp_path / "s", items, values=kind, seed=1, fingerprint_bits=32)
        return FAST.open(tmp_path / "s")

    return made


def test_references_are_given_back(opened: Callable[[str], Any]) -> None:
    texts = [
        Text("key 5"),
        "key 6",
        b"key 7",
        bytearray(b"key 8"),
        "absent",
        b"absent!",
        Text("absent"),
        "\ud800",
        5000,
    ]
    default = object()
    for values in VALUES:
        store = opened(values)
        watched = [*texts, default, store, store._opened, texts, type(store), *type(store).__mro__]

        def ask_all(store: Any = store) -> None:
            for ask, key in itertools.product(QUESTIONS.values(), texts):
                outcome(lambda: ask(store, key))  # noqa: B023
                outcome(lambda: store.get(key, default))  # noqa: B023
            outcome(lambda: store.get_many(texts[:7], default))
            outcome(lambda: store.get())
            outcome(lambda: store.get("a", other=1))
            outcome(lambda: FAST._keys.join(texts, FAST._keys.BytesKeys()))

        ask_all()
        gc.collect()
        before = [sys.getrefcount(one) for one in watched]
        for _ in range(20):
            ask_all()
        gc.collect()
        assert [sys.getrefcount(one) for one in watched] == before


@pytest.mark.parametrize("values", ["bytes", "bytes of one width", "floats", "text", "JSON"])
def test_no_memory_is_kept(opened: Callable[[str], Any], values: str) -> None:
    function, store = FAST.MPHF.build(np.arange(100)), opened(values)
    data, texts = store.to_bytes(), FAST._keys.BytesKeys()
    keys = ["key 5", b"key 5", bytearray(b"key 5"), Text("key 5"), "absent", "größer", "\ud800", None]

    def work() -> None:
        for key in keys:
            for ask in "[]", "get", "in", "get_many", "get_many or":
                outcome(lambda: QUESTIONS[ask](store, key))  # noqa: B023
        outcome(lambda: function.index(5))
        outcome(lambda: function.index_many(list(range(50))))
        outcome(lambda: FAST._keys.join(keys, texts))
        with FAST.open(data) as other:
            assert "key 7" in other

    def blocks() -> int:
        gc.collect()
        return sys.getallocatedblocks()

    for _ in range(50):
        work()
    before = blocks()
    for _ in range(1000):
        work()
    assert blocks() - before < 500  # some for allocators' caches; one per round would be 1000


def test_a_cycle_through_a_handle_is_collected(opened: Callable[[str], Any], tmp_path: Path) -> None:
    store = opened("bytes")
    store.itself = store
    store._opened.handle = store
    assert store["key 5"]
    del store
    gc.collect()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_a_key_may_close_the_handle_it_is_looked_up_in() -> None:
    class Closing(int):
        def __index__(self) -> int:
            handle.close()
            gc.collect()
            return int(self)

    for key in Closing(5), Closing(500):
        for module in FAST, PLAIN:
            handle = module.Filter.build(np.arange(100), fingerprint_bits=32, seed=1)
            assert (key in handle) == (key < 100)
            handle = module.MPHF.build(np.arange(100), seed=1)
            assert 0 <= handle.index(key) < 100


def test_threads_and_closing(opened: Callable[[str], Any]) -> None:
    wrong: list[Any] = []
    keys = [f"key {i}" for i in range(100)]

    def look_up(store: Any, expected: list[Any]) -> None:
        try:
            while True:
                for key, value in zip(keys, expected, strict=True):
                    if store[key] != value or store.get(key) != value or key not in store:
                        wrong.append(key)
                if store.get_many(keys) != expected:
                    wrong.append("get_many")
        except ValueError:
            pass
        except BaseException as error:
            wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            for values in "bytes", "bytes of one width":
                store = opened(values)
                expected = store.get_many(keys)
                threads = [threading.Thread(target=look_up, args=(store, expected)) for _ in range(3)]
                for thread in threads:
                    thread.start()
                assert store["key 5"] == expected[5]
                store.close()
                for thread in threads:
                    thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
