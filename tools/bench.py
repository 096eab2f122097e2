#!/usr/bin/env python3
"""Benchmarks, as JSON lines: `python tools/bench.py mphf --help`. They print; they check
nothing but that results are right.

Times are CPU times, medians of several runs: on a shared machine wall time says more about the neighbours."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mphfstore import MPHF
from mphfstore._build import Index, Options, build_hashed, hash_batch, isa
from mphfstore._format import Kind
from mphfstore._handle import aligned, write
from mphfstore._keys import IntegerKeys
from mphfstore._native import ffi, lib
from mphfstore._publish import Memory

KEYS = IntegerKeys("<u8")
POINTS = ("brute:5:5", "brute:8:100", "rotation:5:5", "rotation:8:100", "rotation:11:7", "rotation:12:500")


def machine() -> str:
    """The processor's name, for the reader of the numbers."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def cpu_ns(work: Callable[[], Any], repeats: int, count: int) -> float:
    """Median CPU time of `work`, of all threads, in ns per each of `count`."""
    times = []
    for _ in range(repeats):
        begin = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - begin)
    return round(statistics.median(times) / count, 1)


def words(array: np.ndarray) -> Any:
    return ffi.from_buffer("uint64_t[]", array)


def bench_mphf(point: str, keys: int, threads: int, repeats: int, seed: int) -> dict[str, Any]:
    """One method and (leaf, bucket): build from ready hashes; single look-ups, independent and dependent, and batched,
    in random order."""
    method, leaf, bucket = point.split(":")
    options = Options.of(method=method, leaf_size=int(leaf), bucket_size=int(bucket), threads=threads)
    rng = np.random.default_rng(seed)
    batch = KEYS.batch(rng.integers(0, 1 << 63, keys, np.uint64))
    hi, lo = hash_batch(batch, seed)
    built: list[Index] = []
    build_ns = cpu_ns(lambda: built.append(build_hashed(hi, lo, seed, options)), repeats, keys)
    memory = Memory()
    write(memory, built[-1], Kind.MPHF, KEYS)
    function = MPHF(aligned(memory.data))
    if not np.array_equal(np.sort(function.index_many(batch.data.view(np.uint64))), np.arange(keys)):
        sys.exit(f"{point}: not a bijection")
    order = rng.permutation(keys)
    hi, lo, out = hi[order], lo[order], np.empty(keys, np.int64)
    reader = function._current().reader
    single, dependent = (
        cpu_ns(lambda flag=flag: lib.mphf_bench_single(reader, words(hi), words(lo), keys, flag), repeats, keys)
        for flag in (0, 1)
    )
    batched = cpu_ns(
        lambda: lib.mphf_bench_batch(reader, words(hi), words(lo), keys, ffi.from_buffer("int64_t[]", out)),
        repeats,
        keys,
    )
    sizes = function.info()["sections"]
    return {
        "method": method,
        "leaf": int(leaf),
        "bucket": int(bucket),
        "keys": keys,
        "bits_per_key": round(function.bits_per_key, 4),
        "trees_bits": round(8 * sizes["trees"] / keys, 4),
        "directory_bits": round(8 * sizes["directory"] / keys, 4),
        "build_ns": build_ns,
        "single_ns": single,
        "dependent_ns": dependent,
        "batched_ns": batched,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    mphf = commands.add_parser("mphf", help="bits per key, build and query times of the bare function")
    mphf.add_argument("points", nargs="*", default=POINTS, help="METHOD:LEAF:BUCKET (default: %(default)s)")
    mphf.add_argument("--keys", type=int, default=1_000_000)
    mphf.add_argument("--threads", type=int, default=1)
    mphf.add_argument("--repeats", type=int, default=5)
    mphf.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for point in arguments.points:
        result = bench_mphf(point, arguments.keys, arguments.threads, arguments.repeats, arguments.seed)
        result |= {"threads": arguments.threads, "isa": isa().decode(), "machine": machine()}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
