"""Building chained seeds on a device, batch after batch of buckets (cuda/chained.h).

    scatter    records to the batch of their hash's top bits                    (_native: build.c)
    device     count, group by bucket, search, put every record at its index     (cuda/chained.h)
    native     buckets the device leaves: too large for its local memory, or too many visits

A batch comes back as the partition that native code would have made of it, but for gaps between bit strings. Bits are
the same, since they are defined and not just found: the smallest that solve their nodes. That a result is a bijection
is checked, for a device that errs must not make a wrong file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _build
from ._build import Options, Words
from ._device import Session, table_buffers
from ._errors import BuildError
from ._native import ffi, lib

BATCH_KEYS = 1 << 22  # 24 bytes of a record and 24 of results and scratch go to the device for each
ITEMS = 32  # of a work-group: no node of the usual parameters has work for more
VISITS_PER_NODE = 64  # at most the native builder's: what the device finds, that would have found
FOUND, OTHER_WORDS = 32, 28 + 16  # cuda/chained.h: FOUND; C_WORDS and twice WORK_WORDS


class Demands:
    """What buckets of 0 … `largest` keys take of a device."""

    def __init__(self, tables: Any, largest: int) -> None:
        fields = ("bits", "nodes", "leaf_seeds", "split_seeds", "low_bits")
        demands = np.zeros(largest + 1, [(name, np.uint32) for name in fields])
        lib.mphf_chain_demands(tables, largest + 1, ffi.from_buffer("chain_demand[]", demands))
        self.bits: NDArray[np.uint32] = demands["bits"]
        self._nodes = np.maximum.accumulate(demands["nodes"])
        self._table = np.maximum(2 * demands["leaf_seeds"], 4 * demands["split_seeds"])
        # of 32 bits of the bitmap at most one is set
        self._seen = np.clip(
            5 + np.ceil(np.log2(np.maximum(demands["leaf_seeds"], 1 << demands["low_bits"]))).astype(np.uint32), 5, 16
        )

    def local_bytes(self) -> NDArray[np.int64]:
        """Local memory for buckets up to every size."""
        keys, nodes = np.arange(len(self.bits), dtype=np.int64), self._nodes.astype(np.int64)
        bytes_of_words = 4 * (6 * nodes + 2 * FOUND + self._table + (1 << self._seen >> 5) + OTHER_WORDS)
        total: NDArray[np.int64] = 16 * keys + bytes_of_words
        return total

    def limits(self, keys: int) -> tuple[np.uint32, ...]:
        """What build_chained is told of local memory for buckets of up to so many keys."""
        return np.uint32(keys), self._nodes[keys], self._table[keys], self._seen[keys]


class Batches:
    """One build: what its batches share."""

    def __init__(self, session: Session, parameters: Any, buckets: int, options: Options) -> None:
        self._session, self._parameters, self._buckets, self._options = session, parameters, buckets, options
        self._isa = _build.isa()
        self._largest, self.tables = -1, None  # native tables up to the largest bucket so far
        self._cancel = ffi.new("int *")

    def _reach(self, largest: int) -> None:
        """Makes tables for buckets up to a size."""
        if largest <= self._largest:
            return
        self.tables = _build._tables(self._parameters, largest)
        self._demands = Demands(self.tables, largest)
        self._on_device = table_buffers(self._session.device, self.tables)
        self._largest = largest

    def build(self, records: NDArray[np.uint64], first: int, count: int, hi: Words, ids: Words) -> Built:
        """The `count` buckets from `first` on: their records, and room for the same in the order of their indices."""
        session, device = self._session, self._session.device
        given = device.upload(records), np.uint64(len(records)), np.uint64(self._buckets), np.uint64(first)
        sizes_there = device.zeros(4 * count)
        session.over("count_buckets", len(records), *given, sizes_there)
        sizes = np.empty(count, np.uint32)
        device.download(sizes_there, sizes)
        if (largest := int(sizes.max())) > lib.MPHF_LARGEST_BUCKET:
            raise _build._Unsolved
        self._reach(largest)

        offsets, slots = np.zeros(count + 1, np.uint32), np.zeros(count + 1, np.uint32)
        np.cumsum(sizes, out=offsets[1:], dtype=np.uint32)
        np.cumsum((self._demands.bits[sizes] + 63) // 64, out=slots[1:], dtype=np.uint32)
        bits = np.zeros(int(slots[-1]) + 3, np.uint64)  # a word before, two behind
        roots, solved = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
        bits_there, (roots_there, solved_there) = device.zeros(bits.nbytes), (device.zeros(4 * count) for _ in range(2))
        (offsets_there, slots_there), lo_there = map(device.upload, (offsets, slots)), device.zeros(8 * len(records))
        session.over("scatter_keys", len(records), *given, offsets_there, device.zeros(4 * count), lo_there)

        local = self._demands.local_bytes()[: largest + 1]
        fitting = max(1, int(np.searchsorted(local, device.local_memory, "right")) - 1)
        shape = np.uint32(self._parameters.leaf), np.uint32(self._parameters.root_bits)
        groups = min(count, 32 * device.units)
        if fitting > 1:
            device.launch(
                session.kernels.build_chained, groups, ITEMS, int(local[fitting]), np.uint32(count), *shape,
                *self._demands.limits(fitting), np.uint32(VISITS_PER_NODE), *self._on_device, lo_there, offsets_there,
                slots_there, device.zeros(4), bits_there, roots_there, solved_there,
            )  # fmt: skip
        hi_there, ids_there = device.zeros(hi.nbytes), device.zeros(ids.nbytes)
        session.over(
            "place_records", len(records), *given, *shape, *self._on_device[1:], offsets_there, slots_there,
            bits_there, roots_there, solved_there, device.zeros(4 * count), hi_there, ids_there,
        )  # fmt: skip
        for there, here in (
            (bits_there, bits), (roots_there, roots), (solved_there, solved), (hi_there, hi), (ids_there, ids),
        ):  # fmt: skip
            device.download(there, here)
        built = Built(sizes, slots, bits, roots, (1 << self._parameters.root_bits) - 1, first)
        self._build_rest(built, np.flatnonzero((solved == 0) & (sizes > 1)), offsets, hi, ids)
        return built

    def _build_rest(
        self, built: Built, numbers: NDArray[np.intp], offsets: NDArray[np.uint32], hi: Words, ids: Words
    ) -> None:
        """Buckets of which the device has but put the records together, natively."""

        def build(bucket: int) -> None:
            begin, end = int(offsets[bucket]), int(offsets[bucket + 1])
            order = np.argsort(ids[begin:end])
            records = np.stack([hi[begin:end], self._lo[ids[begin:end]], ids[begin:end]], 1)[order]
            partition = lib.mphf_build_partition(
                self.tables, self._isa, built.first + bucket, 1, self._buckets,
                ffi.from_buffer("hashed_record[]", records), end - begin,
                *(ffi.from_buffer("uint64_t[]", words[begin:end]) for words in (hi, ids)), self._cancel,
            )  # fmt: skip
            try:
                _build._check(partition)
                built.put(bucket, partition)
            finally:
                lib.mphf_partition_free(partition)

        if not len(numbers):
            return
        with ThreadPoolExecutor(self._options.threads) as pool:
            try:
                list(pool.map(build, map(int, numbers)))
            except BaseException:
                self._cancel[0] = 1
                raise

    def run(self, hi: Words, lo: Words, ordered_hi: Words, ordered_records: Words) -> list[Built]:
        """All batches in order, as partitions of one length."""
        self._lo = lo
        count, log2 = len(hi), _build.partitions_log2(len(hi))
        while log2 and count >> (log2 - 1) <= BATCH_KEYS:
            log2 -= 1
        starts, parted = np.empty((1 << log2) + 1, np.uint64), np.empty((count, 3), np.uint64)
        words = (ffi.from_buffer("uint64_t[]", array) for array in (hi, lo))
        lib.mphf_scatter(
            *words, count, log2, ffi.from_buffer("uint64_t[]", starts), ffi.from_buffer("hashed_record[]", parted)
        )
        per_batch = self._buckets >> log2
        progress, batches, missing = self._options.progress, [], np.ones(count, bool)
        if progress:
            progress(0, count)
        for number in range(1 << log2):
            part = slice(int(starts[number]), int(starts[number + 1]))
            batches.append(
                self.build(parted[part], number * per_batch, per_batch, ordered_hi[part], ordered_records[part])
            )
            missing[ordered_records[part]] = False
            if progress:
                progress(part.stop, count)
        if missing.any():
            raise BuildError(f"{self._session.device.name} built no bijection: use backend='native'; please report it")
        return batches


class Built:
    """A batch's buckets as a native partition; `partition` lives as long as this."""

    def __init__(
        self, sizes: NDArray[np.uint32], slots: NDArray[np.uint32], bits: Words, roots: NDArray[np.uint32], escape: int,
        first: int,
    ) -> None:  # fmt: skip
        self.first, self._bits, self._slots, self._roots, self._escape = first, bits, slots, roots, escape
        self._salts: dict[int, int] = {}
        self.sizes = sizes

    def put(self, bucket: int, partition: Any) -> None:
        """The bits of one bucket, built natively as a partition of its own."""
        words = int(self._slots[bucket + 1] - self._slots[bucket])
        at = 1 + int(self._slots[bucket])
        self._bits[at : at + words] = np.frombuffer(ffi.buffer(partition.bits, 8 * words), np.uint64)
        for salt in partition.salts[0 : partition.salt_count]:
            self._salts[bucket] = salt.salt

    @property
    def partition(self) -> Any:
        escaped = np.flatnonzero(self._roots >= self._escape)
        salts = sorted((self._salts | {int(i): int(self._roots[i]) for i in escaped}).items())
        p = ffi.new("mphf_partition *")
        starts = 64 * self._slots[:-1].astype(np.uint64)
        p.status, p.bit_count, p.largest = lib.STATUS_OK, 64 * int(self._slots[-1]), int(self.sizes.max())
        p.bits, p.sizes = ffi.from_buffer("uint64_t[]", self._bits[1:]), ffi.from_buffer("uint32_t[]", self.sizes)
        p.starts = ffi.from_buffer("uint64_t[]", starts)
        p.salts = kept = ffi.new("root_salt[]", salts or [(0, 0)])
        p.salt_count = len(salts)
        self._kept = starts, kept
        return p
