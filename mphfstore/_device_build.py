"""Building functions on devices.

    keys       to the device chunk by chunk, hashed there; how many each bucket has   (cuda/grouping.h)
    group      some buckets one after the other, their records in the order of buckets
    search     bit strings of a group                     (_device_chained.py, _device_levels.py)
    records    of every group in the order of their keys' indices

Keys that fit a device's memory are one group, and stay there; of more, every group's pass hashes all keys again and
keeps its own. Groups are shared among all devices. Bits are the same as native code's, since they are defined and not
just found: the smallest that solve their nodes. That a result is a bijection is checked, for a device that errs must
not make a wrong file."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _build
from ._build import Index, Words
from ._device import Session
from ._device_chained import ChainedSearch
from ._device_keys import Feed, Group
from ._device_levels import LevelsSearch
from ._errors import BuildError
from ._keys import KeyBatch
from ._native import lib
from ._options import Options

RECORD_BYTES = 56  # of a device's memory for every key of a group: hash and number, these again in order, scratch


class Search(Protocol):
    """A method's search over all groups of a function."""

    def run(self, group: Group, hi: Words | None, ids: Words | None, report: Callable[[int], None]) -> None:
        """Finds the bit strings of a group and puts its records in the order of their indices. May run for several
        groups at once, of different devices. report: is told of keys that are done, of all in the end."""

    def sections(self) -> tuple[Words, Words]:
        """Trees and directory of the whole function."""


def build_on(
    sessions: Sequence[Session], keys: KeyBatch, seed: int, options: Options, *, records: bool, hashed: bool = False
) -> Index:
    """As `_build.build_hashed`, for one key or more. records: whether the index is to have them; hashed: keys are
    their hashes, hi and lo. Raises _Unsolved, BuildError, and whatever a driver raises."""
    parameters, count = options.parameters(), len(keys)
    buckets = _build.bucket_count(count, options)
    cuts = _cuts(sessions, count, buckets)
    left = sessions[0].device.memory // 2 - RECORD_BYTES * count
    key_bytes = keys.data.nbytes + (0 if keys.offsets is None else keys.offsets.nbytes)
    feed = Feed(sessions[0], keys, seed, hashed, keep=len(cuts) == 2 and key_bytes < left)
    feeds = {id(sessions[0]): feed} | {id(session): Feed(session, keys, seed, hashed) for session in sessions[1:]}
    sizes = feed.count(buckets)
    if (largest := int(sizes.max())) > lib.MPHF_LARGEST_BUCKET:
        raise _build._Unsolved
    before = np.zeros(buckets + 1, np.int64)
    np.cumsum(sizes, out=before[1:])
    if before[-1] != count:
        name = sessions[0].device.name
        raise BuildError(f"{name} counted {before[-1]} of {count} keys: use backend='native'; please report it")
    if np.diff(before[cuts]).max() >= 1 << 32:
        raise _build._Unsolved  # a hash that spreads nothing
    method = ChainedSearch if options.method == "chained" else LevelsSearch
    tables = _build._tables(parameters, max(largest, _build.largest_expected(count, options)))
    search: Search = method(parameters, tables, sizes, options)
    hi, ids = (np.empty(count if records else 0, np.uint64) for _ in range(2))
    done, progress = 0, options.progress
    reporting = threading.Lock()
    if progress:
        progress(0, count)

    def report(keys: int) -> None:
        nonlocal done
        with reporting:
            done += keys
            if progress:
                progress(done, count)

    def build(number: int, session: Session) -> None:
        first, end = int(cuts[number]), int(cuts[number + 1])
        part = slice(int(before[first]), int(before[end]))
        group = feeds[id(session)].group(buckets, first, part.start, sizes[first:end])
        search.run(group, hi[part] if records else None, ids[part] if records else None, report)

    _share(len(cuts) - 1, sessions, build)
    return Index(parameters, options.bucket_size, seed, count, buckets, largest, *search.sections(), hi, ids)


def _cuts(sessions: Sequence[Session], keys: int, buckets: int) -> NDArray[np.int64]:
    """First buckets of all groups, and their end: as many as there are devices, and as memory makes necessary."""
    memory = min(session.device.memory for session in sessions) // 2
    largest = min(session.device.largest_buffer for session in sessions)
    groups = max(
        len(sessions) if keys >= 1 << 20 else 1,
        -(-RECORD_BYTES * keys // memory),
        -(-8 * keys // largest),
        keys >> 31,
    )
    groups = min(groups, buckets)
    return np.arange(groups + 1, dtype=np.int64) * buckets // groups


def _share(count: int, sessions: Sequence[Session], build: Any) -> None:
    """Runs build(number, session) for all numbers, as many at once as there are sessions. Not in a pool for one: a
    KeyboardInterrupt is seen between two launches."""
    waiting = deque(range(count))

    def work(session: Session) -> None:
        while True:
            try:
                number = waiting.popleft()
            except IndexError:
                return
            try:
                build(number, session)
            except BaseException:
                waiting.clear()
                raise

    if len(sessions) == 1 or count == 1:
        work(sessions[0])
        return
    with ThreadPoolExecutor(len(sessions)) as pool:
        try:
            for future in [pool.submit(work, session) for session in sessions]:
                future.result()
        finally:  # after a KeyboardInterrupt, too
            waiting.clear()
