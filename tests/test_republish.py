"""A writer that publishes the same file again and again while processes read it, each value saying which generation it
is of: no answer is of two generations, none is of an older one than before, nothing crashes."""

from __future__ import annotations

import multiprocessing
import threading
import traceback
from pathlib import Path
from typing import Any

import mphfstore as ms

GENERATIONS, READERS = 200, 8
MODES = ["mmap", "pread", "ram"]


def keys_of(generation: int) -> list[str]:
    """Another number of keys every time; one of them in this generation alone."""
    return [*(f"key {i}" for i in range(100 + generation % 7)), f"only in {generation}"]


def value_of(key: str, generation: int) -> bytes:
    return f"{generation} {key} ".encode() * (1 + generation % 3)


def publish(path: Path, generation: int) -> None:
    records = {key: value_of(key, generation) for key in keys_of(generation)}
    ms.build(path, records, fingerprint_bits=32, preset="quick", metadata=generation)


def look(store: ms.Store, seen: int) -> int:
    """Asks in every way and returns the generation that answered last."""
    view = store.get_view("key 5")
    generation = int(bytes(view).split()[0])
    assert seen <= generation and view == value_of("key 5", generation)
    assert store["key 6"] in [value_of("key 6", later) for later in range(generation, GENERATIONS + 1)]
    values = store.get_many([f"key {i}" for i in range(100)])
    later = int(values[0].split()[0])
    assert values == [value_of(f"key {i}", later) for i in range(100)], "of two generations"
    assert generation <= later
    assert view == value_of("key 5", generation), "a view that changed"
    only = store.get(f"only in {later}")
    assert only in (None, value_of(f"only in {later}", later))
    assert store.info()["metadata"] >= later
    return later


def read(number: int, store: ms.Store | None, path: str, done: Any, results: Any) -> None:
    """Some inherit their handle, some open it, some have a thread that reloads it."""
    try:
        if store is None:
            store = ms.Store.open(path, mode=MODES[number % 3])
        ended = threading.Event()

        def reload() -> None:
            while not ended.wait(0.002):
                store.reload()

        reloader = threading.Thread(target=reload)
        if number % 4 == 3:
            reloader.start()
        seen, rounds, generations = 0, 0, set()
        while not done.is_set():
            if number % 4 != 3 and store.stale():
                assert store.reload()
            seen = look(store, seen)
            generations.add(seen)
            rounds += 1
        ended.set()
        if number % 4 == 3:
            reloader.join()
        store.reload()
        assert look(store, seen) == GENERATIONS and f"only in {GENERATIONS}" in store
        store.verify()
        results.put((number, rounds, len(generations)))
    except BaseException:
        results.put((number, traceback.format_exc(), 0))


def test_readers_go_on_while_the_file_is_published_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "s"
    publish(path, 0)
    context = multiprocessing.get_context("fork")
    done, results = context.Event(), context.Queue()
    readers = [
        context.Process(
            target=read,
            args=(i, ms.open(path, mode=MODES[i % 3]) if i % 2 else None, str(path), done, results),
        )
        for i in range(READERS)
    ]
    for reader in readers:
        reader.start()
    for generation in range(1, GENERATIONS + 1):
        publish(path, generation)
    done.set()
    answers = [results.get(timeout=60) for _ in readers]
    for reader in readers:
        reader.join(60)
    assert [answer for answer in answers if isinstance(answer[1], str)] == []
    assert [reader.exitcode for reader in readers] == [0] * READERS
    print(answers)
    assert all(generations > 5 for _, _, generations in answers), "not under load"
    assert [name for name in tmp_path.iterdir()] == [path]
