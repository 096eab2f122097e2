"""Look-ups in files none of which is in the page cache."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .subject import Handle

T = TypeVar("T")

ATTEMPTS = 5
DROPPED = 0.01  # at most this part of the pages may remain for the figures to count as cold


def files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def drop(files: Sequence[Path]) -> float | None:
    """Writes them back and asks for their pages to be dropped, which works unless a process has them mapped. The part
    that is still in memory; None if the system has no such call or does not say."""
    if not hasattr(os, "posix_fadvise"):
        return None
    remaining = None
    for _ in range(ATTEMPTS):
        for file in files:
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
        remaining = resident(files)
        if not remaining:
            break
        time.sleep(0.02)  # pages that are being read ahead cannot be dropped yet
    return remaining


def resident(files: Sequence[Path]) -> float | None:
    """The part of their pages that is in memory; None if the system does not say. (mincore touches no page; a read
    that must not wait would ask for them.)"""
    mincore = getattr(ctypes.CDLL(None), "mincore", None)
    if mincore is None:
        return None
    pages = present = 0
    for file in files:
        size = file.stat().st_size
        if size == 0:
            continue
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
            view = np.frombuffer(mapping, np.uint8)
            vector = np.empty(-(-size // mmap.PAGESIZE), np.uint8)
            failed = mincore(
                ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(size), ctypes.c_void_p(vector.ctypes.data)
            )
            del view  # else the mapping could not be closed
            if failed:
                return None
        pages += len(vector)
        present += int((vector & 1).sum())
    return present / max(1, pages)


def read_ahead(path: Path) -> int | None:
    """How many KiB the system reads around a page that is not there, which decides how much a look-up costs and how
    soon nothing is cold any more; None if it does not say."""
    device = path.stat().st_dev
    try:
        return int(Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb").read_text())
    except (OSError, ValueError):
        return None


def _read_bytes() -> int | None:
    """What this process has made the disks read so far."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("read_bytes")), None)


@dataclass(frozen=True)
class Cost:
    us: float  # wall time
    faults: int  # page faults that waited for a disk; reads that did show in `read_bytes` alone
    read_bytes: int | None  # from disks, with what was read ahead


def _cost(work: Callable[[], T]) -> tuple[T, Cost]:
    read, faults = _read_bytes(), resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    begin = time.perf_counter_ns()
    result = work()
    us = (time.perf_counter_ns() - begin) / 1000
    faults, read_now = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults, _read_bytes()
    return result, Cost(us, faults, None if read is None or read_now is None else read_now - read)


def cold(path: Path, open_store: Callable[[Path], Handle], rounds: int, **keys: Sequence[Any]) -> dict[str, Any]:
    """Every round drops the pages, opens the store and looks up a few of the keys: few, because the system reads
    ahead around each, and after some hundred there is nothing cold left in a small file.

    keys: for each kind, as "hit", those of all rounds and one more, which is not counted: it faults in the code."""
    files, remaining = files_of(path), []
    costs: dict[str, list[Cost]] = {"open": []}
    for kind, all_keys in keys.items():
        per_round = len(all_keys) // (rounds + 1)
        costs[kind] = []
        for begin in range(0, (rounds + 1) * per_round, per_round):
            remaining.append(drop(files))
            handle, opening = _cost(partial(open_store, path))
            _, looking = _cost(partial(_each, handle.get, all_keys[begin : begin + per_round]))
            handle.close()
            del handle  # a mapping that is kept would keep its pages
            if begin:
                costs["open"].append(opening)
                costs[kind].append(looking)
    known = [part for part in remaining if part is not None]
    most = max(known) if len(known) == len(remaining) else None
    out: dict[str, Any] = {
        "dropped": most is not None and most <= DROPPED,
        "resident": most,
        "read_ahead_kb": read_ahead(path),
    }
    if not out["dropped"]:
        out["note"] = "pages were not dropped, or the system does not say: these are not cold figures"
    for kind, runs in costs.items():
        out |= _summary(kind, runs, 1 if kind == "open" else per_round)
    return out


def _each(get: Callable[[Any], Any], keys: Sequence[Any]) -> None:
    for key in keys:
        get(key)


def _summary(kind: str, runs: Sequence[Cost], count: int) -> dict[str, float | None]:
    """Per look-up: the median time of the rounds, the mean of faults and bytes."""
    read = [run.read_bytes for run in runs if run.read_bytes is not None]
    return {
        f"{kind}_us": round(statistics.median(run.us for run in runs) / count, 2),
        f"{kind}_faults": round(statistics.fmean(run.faults for run in runs) / count, 3),
        f"{kind}_read_bytes": round(statistics.fmean(read) / count) if len(read) == len(runs) else None,
    }
