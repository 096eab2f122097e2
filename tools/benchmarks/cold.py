"""Look-ups in files none of which is in the page cache."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
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
    """Writes them back and asks for their pages to be dropped. The part that is still in memory, as where the file
    system ignores that; None if the system has no such call or does not say."""
    if not hasattr(os, "posix_fadvise"):
        return None
    remaining = None
    for _ in range(ATTEMPTS):
        _let_go(files)
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


def _let_go(files: Sequence[Path]) -> None:
    """Takes the pages of these files out of this process's mappings, for pages that are mapped are not dropped. They
    fault in again when they are touched. Linux only."""
    names = {str(file) for file in files}
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return
    madvise = ctypes.CDLL(None).madvise
    for line in lines:
        span, permissions, *rest = line.split(maxsplit=5)
        if rest[-1] in names and "w" not in permissions:  # a page that was written may have no other copy
            begin, end = (int(address, 16) for address in span.split("-"))
            madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), ctypes.c_int(mmap.MADV_DONTNEED))


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


def cold(
    path: Path, open_store: Callable[[Path], Handle], warm: Any, kinds: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """The cost of opening a store of which nothing is cached, and of one look-up in it: every look-up has the pages
    dropped for it, because the system reads ahead, and after a few there might be nothing cold left.

    warm: a key that is looked up first, so that memory is allocated and code faulted in. kinds: the keys of each kind,
    as "hit"."""
    files = files_of(path)
    remaining: list[float | None] = []
    costs: dict[str, list[Cost]] = {"open": []}
    open_store(path).close()  # faults in the code of opening
    for kind, keys in kinds.items():
        costs[kind] = []
        for key in keys:
            remaining.append(drop(files))
            handle, opening = _cost(partial(open_store, path))
            handle.get(warm)
            remaining.append(drop(files))
            _, looking = _cost(partial(handle.get, key))
            handle.close()
            costs["open"].append(opening)
            costs[kind].append(looking)
    known = [part for part in remaining if part is not None]
    most = max(known) if len(known) == len(remaining) else None
    out: dict[str, Any] = {"dropped": most is not None and most <= DROPPED, "resident": most}
    out["read_ahead_kb"] = read_ahead(path)
    if not out["dropped"]:
        out["note"] = "pages were not dropped, or the system does not say: these are not cold figures"
    for kind, runs in costs.items():
        out |= _summary(kind, runs)
    return out


def _summary(kind: str, runs: Sequence[Cost]) -> dict[str, float | None]:
    """The median time, the mean of faults and bytes."""
    read = [run.read_bytes for run in runs if run.read_bytes is not None]
    return {
        f"{kind}_us": round(statistics.median(run.us for run in runs), 1),
        f"{kind}_faults": round(statistics.fmean(run.faults for run in runs), 2),
        f"{kind}_read_bytes": round(statistics.fmean(read)) if len(read) == len(runs) else None,
    }
