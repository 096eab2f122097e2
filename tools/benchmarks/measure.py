"""Measuring: times as medians of several runs, percentiles of single calls."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Timings:
    """Times by name. CPU time, of all threads, is what to judge by: on a shared machine wall time says more about the
    neighbours; it is kept beside it."""

    def __init__(self) -> None:
        self._runs: dict[str, list[tuple[float, float]]] = {}

    def run(self, name: str, count: int, work: Callable[[], T]) -> T:
        """Does the work, which handles `count` keys, and keeps the time that each took."""
        enabled = gc.isenabled()
        gc.disable()  # a collection would be charged to whoever happens to allocate
        try:
            wall, cpu = time.perf_counter_ns(), time.process_time_ns()
            result = work()
            cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
        finally:
            if enabled:
                gc.enable()
        self._runs.setdefault(name, []).append((cpu / max(1, count), wall / max(1, count)))
        return result

    def fields(self) -> dict[str, float]:
        """NAME_ns and NAME_wall_ns: medians of CPU and wall time per key."""
        out = {}
        for name, runs in self._runs.items():
            cpu, wall = (statistics.median(column) for column in zip(*runs, strict=True))
            out[f"{name}_ns"], out[f"{name}_wall_ns"] = round(cpu, 1), round(wall, 1)
        return out


# Loops with nothing in them but the call: their own cost, `loop_ns`, is in every time per key of a single look-up.


def no_call(keys: Sequence[Any]) -> None:
    for _ in keys:
        pass


def index_each(mapping: Any, keys: Sequence[Any]) -> None:
    for key in keys:
        mapping[key]


def index_each_absent(mapping: Any, keys: Sequence[Any]) -> None:
    for key in keys:
        try:  # noqa: SIM105 - a context manager would cost more than the look-up
            mapping[key]
        except KeyError:
            pass


def call_each(call: Callable[[Any], Any], keys: Sequence[Any]) -> None:
    for key in keys:
        call(key)


def contains_each(container: Any, keys: Sequence[Any]) -> None:
    for key in keys:
        if key in container:
            pass


def percentiles(name: str, call: Callable[[Any], Any] | None, keys: Sequence[Any]) -> dict[str, float]:
    """NAME_p50_ns, NAME_p99_ns and NAME_p999_ns of calls timed one by one, in wall time. The clock's own time is in
    them: `call=None` gives that alone."""
    times = [0] * len(keys)
    clock = time.perf_counter_ns
    if call is None:
        for i, _ in enumerate(keys):
            begin = clock()
            times[i] = clock() - begin
    else:
        for i, key in enumerate(keys):
            begin = clock()
            call(key)
            times[i] = clock() - begin
    at = np.percentile(times, (50, 99, 99.9), method="higher") if times else (0, 0, 0)
    return {f"{name}_{p}_ns": int(value) for p, value in zip(("p50", "p99", "p999"), at, strict=True)}


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """None where either was not measured."""
    return None if ours is None or not theirs else round(ours / theirs, 3)
