"""Chained seeds on devices (cuda/chained.h): bit strings go straight to their places in the file, for the number of
keys decides the length of each. Buckets that the device leaves – too large for its local memory, or too many visits –
are native code's."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _build
from ._build import Words
from ._device import CONTROL_WORDS, FOUND, WORK_WORDS, table_buffers
from ._device_keys import Group, Placing
from ._format import chain_directory_words, chain_line
from ._native import ffi, lib
from ._options import Options

# Of a work-group, on GPUs – there is work for 64 to 128 at the widest nodes of the presets – and on processors, where
# items are turns of a loop and every phase costs each of them something.
ITEMS = {True: 64, False: 2}
LAUNCH_BUCKETS = 1 << 18  # of one launch, so that none takes long: displays share GPUs
MOST_KEYS = 65_535  # of a bucket: a place in it has 16 bits
VISITS_PER_NODE = 64  # at most the native builder's: what the device finds, that would have found


class Demands:
    """What buckets of 0 … `largest` keys take of a device."""

    def __init__(self, tables: Any, largest: int) -> None:
        fields = ("nodes", "leaf_seeds", "split_seeds", "low_bits")
        demands = np.zeros(largest + 1, [(name, np.uint32) for name in fields])
        lib.mphf_chain_demands(tables, largest + 1, ffi.from_buffer("chain_demand[]", demands))
        self._nodes = demands["nodes"]
        self._table = np.maximum(2 * demands["leaf_seeds"], 4 * demands["split_seeds"])
        # of 32 bits of the bitmap at most one is set
        self._seen = np.clip(
            5 + np.ceil(np.log2(np.maximum(demands["leaf_seeds"], 1 << demands["low_bits"]))).astype(np.uint32), 5, 16
        )

    def local_bytes(self) -> NDArray[np.int64]:
        """Local memory for buckets up to every size."""
        keys, nodes = np.arange(len(self._nodes), dtype=np.int64), self._nodes.astype(np.int64)
        words = keys + (keys + 1) // 2 + 6 * nodes + 2 * FOUND + self._table + (1 << self._seen >> 5) + CONTROL_WORDS
        total: NDArray[np.int64] = 8 * WORK_WORDS + 4 * words
        return total

    def limits(self, keys: int) -> tuple[np.uint32, ...]:
        """What build_chained is told of local memory for buckets of up to so many keys."""
        return np.uint32(keys), self._nodes[keys], self._table[keys], self._seen[keys]


class ChainedSearch:
    """The search for one function."""

    def __init__(self, parameters: Any, tables: Any, sizes: NDArray[np.uint32], options: Options) -> None:
        self._sizes, self._threads, self._isa = sizes, options.threads, _build.isa()
        self._shape = np.uint32(parameters.leaf), np.uint32(parameters.root_bits)
        self._escape = (1 << parameters.root_bits) - 1
        self._tables, self._demands = tables, Demands(tables, int(sizes.max()))
        self._line = chain_line(self._tables, sizes)
        bits = self._start(len(sizes), int(sizes.sum(dtype=np.uint64)))
        self._trees = np.zeros(2 + -(-bits // 64), np.uint64)
        self._salts: dict[int, int] = {}
        self._merging = threading.Lock()

    def _start(self, bucket: int, before: int) -> int:
        """First bit of a bucket."""
        return int(lib.mphf_chain_start(self._line, before, bucket))

    def run(self, group: Group, hi: Words | None, ids: Words | None, report: Callable[[int], None]) -> None:
        """Finds the bit strings of a group and puts its records in the order of their indices."""
        session, device, count = group.session, group.session.device, len(group.sizes)
        tables = table_buffers(device, self._tables)
        first_word = self._start(group.first, group.before) // 64
        end_word = -(-self._start(group.first + count, group.before + len(group)) // 64)
        words = np.empty(2 + end_word - first_word, np.uint64)
        numbers = [self._line.slope, self._line.offset % (1 << 64), group.before, group.first, 64 * first_word]
        line_there, bits = device.upload(np.array(numbers, np.uint64)), device.zeros(words.nbytes)
        roots_there, solved_there = device.zeros(4 * count), device.zeros(4 * count)
        self._launch(group, report, tables, line_there, bits, roots_there, solved_there)

        with Placing(group, hi, ids) as placing:
            session.over(
                "place_records", len(group), np.uint32(len(group)), np.uint64(group.all), *self._shape, *tables[1:],
                group.lo, group.hi, group.ids, group.there, line_there, bits, roots_there, solved_there,
                *placing.arguments,
            )  # fmt: skip
        roots, solved = np.empty(count, np.uint32), np.empty(count, np.uint32)
        for there, here in ((roots_there, roots), (solved_there, solved), (bits, words)):
            device.download(there, here)
        escaped = np.flatnonzero((solved != 0) & (roots >= self._escape))
        with self._merging:  # groups share words where they meet
            self._trees[1 + first_word : 1 + end_word] |= words[1:-1]
            self._salts |= {group.first + int(i): int(roots[i]) for i in escaped}
        self._build_rest(group, np.flatnonzero((solved == 0) & (group.sizes > 1)), hi, ids)

    def _launch(
        self, group: Group, report: Callable[[int], None], tables: list[Any], line: Any, bits: Any, roots: Any,
        solved: Any,
    ) -> None:  # fmt: skip
        """Launches, two at a time: a KeyboardInterrupt does not wait for all of them."""
        session, device, count = group.session, group.session.device, len(group.sizes)
        local = self._demands.local_bytes()[: min(int(group.sizes.max()), MOST_KEYS) + 1]
        fitting = max(1, int(np.searchsorted(local, device.local_memory, "right")) - 1)
        if fitting < 2:
            report(len(group))
            return
        keys_there, spare = device.empty(8 * len(group)), device.empty(8 * len(group))
        session.over("copy_words", len(group), group.lo, np.uint64(len(group)), keys_there)
        running: deque[tuple[Any, int]] = deque()
        limits = self._demands.limits(fitting)
        for begin in range(0, count, LAUNCH_BUCKETS):
            end = min(begin + LAUNCH_BUCKETS, count)
            groups = min(end - begin, 32 * device.units)
            event = device.launch(
                session.kernels.build_chained, groups, ITEMS[device.gpu], int(local[fitting]),
                np.uint32(end), *self._shape, *limits, np.uint32(VISITS_PER_NODE), *tables, keys_there, spare,
                group.there, line, device.upload(np.array([begin], np.uint32)), bits, roots, solved,
            )  # fmt: skip
            running.append((event, int(group.offsets[end]) - int(group.offsets[begin])))
            while len(running) > (end < count):
                event, keys = running.popleft()
                event.wait()
                report(keys)

    def _build_rest(self, group: Group, buckets: NDArray[np.intp], hi: Words | None, ids: Words | None) -> None:
        """Buckets of which the device has but put the records together, natively."""
        cancel = ffi.new("int *")

        def build(bucket: int) -> None:
            begin, end = int(group.offsets[bucket]), int(group.offsets[bucket + 1])
            records = np.stack([column[begin:end] for column in columns], 1)
            records = records[np.argsort(records[:, 2])]
            ordered = np.empty((2, end - begin), np.uint64)
            number = group.first + bucket
            partition = lib.mphf_build_partition(
                self._tables, self._isa, number, 1, group.all, ffi.from_buffer("hashed_record[]", records),
                end - begin, *(ffi.from_buffer("uint64_t[]", words) for words in ordered), cancel,
            )  # fmt: skip
            try:
                _build._check(partition)
                with self._merging:
                    for one in partition.salts[0 : partition.salt_count]:
                        self._salts[number] = one.salt
                    trees = ffi.from_buffer("uint64_t[]", self._trees[1:])
                    lib.mphf_chain_lay_out(self._line, partition, number, 1, group.before + begin, trees)
            finally:
                lib.mphf_partition_free(partition)
            if hi is not None and ids is not None:
                hi[begin:end], ids[begin:end] = ordered

        if not len(buckets):
            return
        columns = np.empty((3, len(group)), np.uint64)  # hi, lo and id of every record
        for there, here in zip((group.hi, group.lo, group.ids), columns, strict=True):
            group.session.device.download(there, here)
        with ThreadPoolExecutor(self._threads) as pool:
            try:
                list(pool.map(build, map(int, buckets)))
            except BaseException:
                cancel[0] = 1
                raise

    def sections(self) -> tuple[Words, Words]:
        """Trees and directory of the whole function."""
        return self._trees, chain_directory_words(self._line, self._sizes, sorted(self._salts.items()))
