"""Building an index natively: keys are hashed, parted by their hash, and every partition is built by C on a thread
pool.

    hash      all keys under one seed                                         (_native: hash.c)
    scatter   records to the partition of their hash's top bits                (_native: build.c)
    build     per partition, in parallel: sort by bucket, search the trees    (_native: build.c, methods/)
    join      bit strings one after the other, the directory over them

Partitions depend on the number of keys alone, and everything is put together in their order: threads change no
byte."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import BuildError
from ._format import chain_directory_words, chain_line, directory_words
from ._keys import KeyBatch
from ._native import ffi, lib
from ._options import Options

Words = NDArray[np.uint64]

PARTITION_KEYS = 16_384
MAX_PARTITIONS_LOG2 = 16


@dataclass(frozen=True)
class Index:
    """A function built: what a file holds of it, and the records in the order of their indices."""

    parameters: Any
    bucket_size: int
    seed: int
    keys: int
    buckets: int
    largest_bucket: int
    trees: Words
    directory: Words
    hi: Words  # upper hash word of the key at every index
    records: Words  # its record in the input


class _Unsolved(Exception):
    """Some bucket has no solution: equal keys, or distinct ones with equal hashes."""


def hash_batch(keys: KeyBatch, seed: int) -> tuple[Words, Words]:
    """Upper and lower words of the keys' hashes."""
    hi, lo = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64)
    lib.mphf_hash_batch(keys.native(), seed, _words(hi), _words(lo))
    return hi, lo


def partitions_log2(keys: int) -> int:
    """Base-2 logarithm of the number of partitions (FORMAT.md §2)."""
    return min(MAX_PARTITIONS_LOG2, max(0, (keys // PARTITION_KEYS).bit_length() - 1))


def bucket_count(keys: int, options: Options) -> int:
    """Of a function: a multiple of the number of partitions."""
    log2 = partitions_log2(keys)
    return -(-keys // (options.bucket_size << log2)) << log2


def largest_expected(keys: int, options: Options) -> int:
    """Keys in a bucket: sizes are Poisson's, and this is eight standard deviations above the mean."""
    expected = int(options.bucket_size + 8 * options.bucket_size**0.5 + 16)
    return min(keys, expected, int(lib.MPHF_LARGEST_BUCKET))


def build_hashed(hi: Words, lo: Words, seed: int, options: Options) -> Index:
    """From the keys' hashes, natively. Raises _Unsolved."""
    parameters = options.parameters()
    count, log2 = len(hi), partitions_log2(len(hi))
    buckets = bucket_count(count, options)
    per_partition = buckets >> log2
    ordered_hi, ordered_records = np.empty_like(hi), np.empty_like(hi)
    starts = np.empty((1 << log2) + 1, np.uint64)
    parted = np.empty((count, 3), np.uint64)
    lib.mphf_scatter(_words(hi), _words(lo), count, log2, _words(starts), ffi.from_buffer("hashed_record[]", parted))
    expected = largest_expected(count, options)  # larger buckets build a table of their own
    tables = _tables(parameters, expected)
    search_isa = isa()

    def build(number: int, cancel: Any) -> Any:
        begin, end = int(starts[number]), int(starts[number + 1])
        if end - begin >= 1 << 32:
            raise _Unsolved  # a hash that spreads nothing
        return lib.mphf_build_partition(
            tables, search_isa, number * per_partition, per_partition, buckets,
            ffi.from_buffer("hashed_record[]", parted[begin:end]), end - begin,
            _words(ordered_hi[begin:end]), _words(ordered_records[begin:end]), cancel,
        )  # fmt: skip

    with _released(_run(build, starts, options)) as partitions:
        largest = max(p.largest for p in partitions)
        join = _join_chained if options.method == "chained" else _join
        trees, directory = join(
            partitions, buckets, per_partition, tables if largest <= expected else _tables(parameters, largest)
        )
        sections = trees, directory, ordered_hi, ordered_records
        return Index(parameters, options.bucket_size, seed, count, buckets, largest, *sections)


class _released:
    """Frees native partitions at the end of a block."""

    def __init__(self, partitions: list[Any]) -> None:
        self._partitions = partitions

    def __enter__(self) -> list[Any]:
        return self._partitions

    def __exit__(self, *error: object) -> None:
        for partition in self._partitions:
            lib.mphf_partition_free(partition)


def _run(build: Callable[[int, Any], Any], starts: Words, options: Options) -> list[Any]:
    """Builds all partitions on threads, their results in order. On any exception the running ones are told to stop
    and waited for.

    The main thread only waits: so a KeyboardInterrupt is seen at once, however long a search takes."""
    cancel = ffi.new("int *")
    total, done = int(starts[-1]), 0
    results: list[Any] = [ffi.NULL] * (len(starts) - 1)
    pool = ThreadPoolExecutor(options.threads or len(os.sched_getaffinity(0)))
    pending: dict[Future[Any], int] = {}
    try:
        pending = {pool.submit(build, number, cancel): number for number in range(len(results))}
        if options.progress:
            options.progress(0, total)
        while pending:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                number = pending.pop(future)
                results[number] = future.result()
                _check(results[number])
                done += int(starts[number + 1] - starts[number])
                if options.progress:
                    options.progress(done, total)
    except BaseException:
        cancel[0] = 1
        pool.shutdown(cancel_futures=True)
        late = [future.result() for future in pending if not future.cancelled() and future.exception() is None]
        for partition in results + late:
            lib.mphf_partition_free(partition)
        raise
    pool.shutdown()
    return results


def _check(partition: Any) -> None:
    if partition == ffi.NULL or partition.status == lib.STATUS_NO_MEMORY:
        raise MemoryError
    if partition.status in (lib.STATUS_EQUAL_KEYS, lib.STATUS_TOO_LARGE):
        raise _Unsolved
    assert partition.status == lib.STATUS_OK, partition.status


def _tables(parameters: Any, largest: int) -> Any:
    """Of trees of buckets up to a size. Raises BuildError."""
    tables = ffi.gc(lib.mphf_tables_new(parameters, largest), lib.mphf_tables_free)
    if tables == ffi.NULL:
        raise BuildError(f"parameters out of bounds: leaf_size {parameters.leaf} with buckets of {largest} keys")
    return tables


def _sizes(partitions: list[Any], per_partition: int) -> NDArray[np.uint32]:
    """Keys of every bucket."""
    return np.concatenate(
        [np.frombuffer(ffi.buffer(partition.sizes, 4 * per_partition), np.uint32) for partition in partitions]
    )


def _join(partitions: list[Any], buckets: int, per_partition: int, tables: Any) -> tuple[Words, Words]:
    """The sections trees and directory of `brute` and `rotation`."""
    if not buckets:
        return join_strings([], np.zeros(0, np.uint32))
    strings = [
        (p.bits, p.bit_count, np.frombuffer(ffi.buffer(p.starts, 8 * per_partition), np.uint64)) for p in partitions
    ]
    return join_strings(strings, _sizes(partitions, per_partition))


def join_strings(strings: Sequence[tuple[Any, int, Words]], sizes: NDArray[np.uint32]) -> tuple[Words, Words]:
    """Bit strings without gaps, and the directory in two Elias-Fano sequences. strings: of some buckets each, in their
    order: words, number of bits, first bit of every bucket; sizes: keys of all buckets."""
    trees = np.zeros(2 + -(-sum(count for _, count, _ in strings) // 64), np.uint64)
    keys_before, starts = np.zeros(len(sizes) + 1, np.uint64), np.zeros(len(sizes) + 1, np.uint64)
    at, first = 0, 0
    for bits, count, firsts in strings:
        lib.mphf_copy_bits(_words(trees[1:]), at, bits, 0, count)
        starts[first : first + len(firsts)] = firsts + np.uint64(at)
        at, first = at + count, first + len(firsts)
    starts[-1] = at
    np.cumsum(sizes, out=keys_before[1:])
    return trees, directory_words(keys_before, starts)


def _join_chained(partitions: list[Any], buckets: int, per_partition: int, tables: Any) -> tuple[Words, Words]:
    """The sections trees and directory of `chained`: bit strings along a line over keys and buckets."""
    sizes = _sizes(partitions, per_partition) if buckets else np.zeros(0, np.uint32)
    line = chain_line(tables, sizes)
    bit_count = lib.mphf_chain_start(line, int(sizes.sum(dtype=np.uint64)), buckets)
    trees = np.zeros(2 + -(-bit_count // 64), np.uint64)
    salts: list[tuple[int, int]] = []
    keys_before = 0
    for number, partition in enumerate(partitions if buckets else []):
        first = number * per_partition
        lib.mphf_chain_lay_out(line, partition, first, per_partition, keys_before, _words(trees[1:]))
        keys_before += int(sizes[first : first + per_partition].sum(dtype=np.uint64))
        salts += [(first + s.bucket, s.salt) for s in partition.salts[0 : partition.salt_count]]
    return trees, chain_directory_words(line, sizes, salts)


def isa() -> bytes:
    """The instruction set to search with: `MPHFSTORE_ISA`, else the best the processor and the operating system run.

    Raises ValueError for one that this machine does not have."""
    name = os.environ.get("MPHFSTORE_ISA")
    if name is None:
        return ffi.string(lib.mphf_isa_best())  # type: ignore[no-any-return]
    if not lib.mphf_isa_available(name.encode()):
        raise ValueError(f"MPHFSTORE_ISA={name}: this machine has no such instruction set; its best is {isa_best()}")
    return name.encode()


def isa_best() -> str:
    return ffi.string(lib.mphf_isa_best()).decode()  # type: ignore[no-any-return]


def _words(array: Words) -> Any:
    return ffi.from_buffer("uint64_t[]", array)
