"""Look-ups of batches: stretches of CHUNK keys, long batches on several threads; and results in the caller's memory.

A stretch is found by one native call, which gives the GIL back, and its results lie in a place of their own: threads
change the time only."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._keys import KeyBatch, Parts
from ._native import lib

CHUNK = 1 << 16  # keys of one native call: their indices stay in the cache until they are used
MOST_THREADS = 8  # unless told otherwise
Indices = NDArray[np.int64]


def look_up(
    call: Callable[[KeyBatch, Indices], None],
    parts: Parts,
    threads: int | None = None,
    *,
    into: Indices | None = None,
    use: Callable[[int, Indices], None] | None = None,
) -> None:
    """The index of every key, -1 for `parts.missing`: to `into`, or as use(first, indices) stretch by stretch, in
    any order and from several threads. call: `index_batch` or `find_batch` of an
    Opened."""

    def find(batch: KeyBatch, first: int) -> None:
        end = first + batch.count
        indices = np.empty(batch.count, np.int64) if into is None else into[first:end]
        call(batch, indices)
        if parts.missing is not None:
            indices[parts.missing[first:end]] = lib.ABSENT
        if use is not None:
            use(first, indices)

    count = thread_count(threads, parts.count)
    if len(parts.batches) == 1 and parts.count <= CHUNK:
        find(parts.batches[0], 0)
        return
    tasks, first = [], 0
    for batch in parts.batches:
        for begin in range(0, batch.count, CHUNK):
            tasks.append(partial(find, batch.slice(begin, min(begin + CHUNK, batch.count)), first + begin))
        first += batch.count
    run(tasks, count)


def found(opened: Any, parts: Parts, threads: int | None) -> Indices:
    """The index of every key, -1 where it is absent."""
    indices = np.empty(parts.count, np.int64)
    look_up(opened.find_batch, parts, threads, into=indices)
    return indices


def gathered(
    opened: Any, parts: Parts, fill: Callable[[], Any] | None, out: Any, threads: int | None
) -> tuple[NDArray[Any], int | None]:
    """The values of all keys, of a store whose values have a dtype. An absent key has the value that `fill` makes;
    without that, the first absent one is told instead."""
    values = checked_out(out, parts.count, opened.values.dtype)
    absent: list[int] = []

    def use(first: int, indices: Indices) -> None:
        part = values[first : first + len(indices)]
        opened.take(indices, part)
        missing = indices < 0
        if missing.any():
            if fill is None:
                absent.append(first + int(np.argmax(missing)))
            else:
                part[missing] = fill()

    look_up(opened.find_batch, apart(parts, values), threads, use=use)
    return values, min(absent, default=None)


def thread_count(threads: int | None, keys: int) -> int:
    """How many threads a batch gets. By default one per whole CHUNK of keys – a thread's start costs as much as the
    look-up of a thousand –, but not more than there are processors, nor than MOST_THREADS."""
    if threads is None:
        if keys < 2 * CHUNK:
            return 1
        return min(keys // CHUNK, len(os.sched_getaffinity(0)), MOST_THREADS)
    if threads < 1:
        raise ValueError(f"threads is at least 1, not {threads}")
    return threads


def run(tasks: Sequence[Callable[[], None]], threads: int) -> None:
    """Calls all tasks, on this thread and others. When one raises, no other begins, and the exception is raised
    here once all threads have ended."""
    waiting, failures = deque(tasks), deque[BaseException]()

    def work() -> None:
        try:
            while True:
                try:
                    task = waiting.popleft()
                except IndexError:
                    return
                task()
        except BaseException as error:
            waiting.clear()
            failures.append(error)

    others = [threading.Thread(target=work) for _ in range(min(threads, len(tasks)) - 1)]
    started = []
    try:
        for thread in others:
            try:
                thread.start()
            except RuntimeError:  # no more threads, or the interpreter ends: those there are do it all
                break
            started.append(thread)
        work()
    finally:  # after a KeyboardInterrupt, too
        if failures:
            waiting.clear()
        for thread in started:
            thread.join()
    if failures:
        raise failures[0]


def checked_out(out: Any, count: int, dtype: Any) -> NDArray[Any]:
    """The array for `count` results: the caller's, which they fit, or a new one."""
    if out is None:
        return np.empty(count, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is an array, not {type(out).__name__}")
    if out.dtype != dtype:
        raise TypeError(f"out has dtype {np.dtype(dtype)}, not {out.dtype}")
    if out.shape != (count,):
        raise ValueError(f"out has shape ({count},), not {out.shape}")
    if not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise ValueError("out is contiguous, aligned and writeable")
    return out


def apart(parts: Parts, out: NDArray[Any]) -> Parts:
    """The same keys where writing to `out` does not change them."""
    if not any(np.may_share_memory(batch.data, out) for batch in parts.batches):
        return parts
    copies = [KeyBatch(b.data.copy(), b.count, b.offsets, b.width, b.strip) for b in parts.batches]
    return Parts(copies, parts.missing)
