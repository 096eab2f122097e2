"""`bench.py mphf`: bits per key, build and query times of the bare function, of ready hashes."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from mphfstore import MPHF, PRESETS
from mphfstore._build import build_hashed, hash_batch
from mphfstore._format import Kind
from mphfstore._handle import write
from mphfstore._keys import IntegerKeys
from mphfstore._native import ffi, lib
from mphfstore._options import Chain, Options
from mphfstore._publish import Memory
from mphfstore._source import aligned

from . import record
from .measure import Timings
from .rounds import Record
from .subject import check
from .workload import distinct_words

KEYS = IntegerKeys("<u8")
POINTS = (
    "brute:5:5", "brute:8:100", "rotation:5:5", "rotation:8:100", "rotation:11:7", "rotation:12:500",
)  # fmt: skip


CHAINED = "chained:LEAF:BUCKET:FANOUT1.FANOUT2.FANOUT3:LEAF_ROOM:SPLIT_ROOM:ROOT_BITS"


def add_command(commands: Any) -> None:
    parser = commands.add_parser("mphf", help=str(__doc__).split(": ", 1)[1])
    which = f"PRESET, METHOD:LEAF:BUCKET or {CHAINED} (default: all presets and some more)"
    parser.add_argument("points", nargs="*", default=default_points(), help=which)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    points = {point: options_of(point, arguments.threads) for point in arguments.points}  # all are read before any runs
    about = {"keys": arguments.keys, "threads": arguments.threads, "repeats": arguments.repeats, "seed": arguments.seed}
    for point, options in points.items():
        record.say(f"mphf, {point}")
        result = bench(point, options, arguments.keys, arguments.repeats, arguments.seed)
        version = record.version("mphfstore")
        record.emit({"benchmark": "mphf", **result, **about, "version": version, **record.environment()})


def default_points() -> list[str]:
    """The presets, and those of POINTS that are none."""
    presets = [options_of(preset, 1) for preset in PRESETS]
    return [*PRESETS, *(point for point in POINTS if options_of(point, 1) not in presets)]


def options_of(point: str, threads: int) -> Options:
    """A point as it is given on the command line."""
    try:
        if point in PRESETS:
            return Options.of(point, threads=threads)
        method, leaf, bucket, *chain = point.split(":")
        options = Options.of(method=method, leaf_size=int(leaf), bucket_size=int(bucket), threads=threads)
        if chain:
            fanouts, leaf_room, split_room, root_bits = chain
            first, second, third = map(int, fanouts.split("."))
            parts = Chain((first, second, third), int(leaf_room), int(split_room), int(root_bits))
            options = replace(options, chain=parts)
        return options
    except ValueError as error:
        presets = ", ".join(PRESETS)
        raise SystemExit(f"{point}: no preset ({presets}), METHOD:LEAF:BUCKET or {CHAINED}: {error}") from None


def bench(point: str, options: Options, keys: int, repeats: int, seed: int) -> Record:
    """Builds from ready hashes; looks up one by one, independent and dependent, and in batches, in random order."""
    rng = np.random.default_rng(seed)
    batch = KEYS.batch(distinct_words(keys, rng))
    hi, lo = hash_batch(batch, seed)
    timings = Timings()
    for _ in range(repeats):
        index = timings.run("build", keys, lambda: build_hashed(hi, lo, seed, options))
    memory = Memory()
    write(memory, index, Kind.MPHF, KEYS)
    function = MPHF(aligned(memory.data))
    indices = function.index_many(batch.data.view(np.uint64))
    check(np.array_equal(np.sort(indices), np.arange(keys)), f"{point}: not a bijection")
    order = rng.permutation(keys)
    queries_hi, queries_lo, found = hi[order], lo[order], np.empty(keys, np.int64)
    queries = ffi.from_buffer("uint64_t[]", queries_hi), ffi.from_buffer("uint64_t[]", queries_lo), keys
    reader, out = function._current().reader, ffi.from_buffer("int64_t[]", found)
    for _ in range(repeats):
        timings.run("single", keys, lambda: lib.mphf_bench_single(reader, *queries, 0))
        timings.run("dependent", keys, lambda: lib.mphf_bench_single(reader, *queries, 1))
        timings.run("batched", keys, lambda: lib.mphf_bench_batch(reader, *queries, out))
    check(np.array_equal(found, indices[order]), f"{point}: a batch of hashes gives other indices than its keys")
    sizes = function.info()["sections"]
    return {
        "subject": point,
        "preset": point if point in PRESETS else None,
        "method": options.method,
        "leaf": options.leaf_size,
        "bucket": options.bucket_size,
        "bits_per_key": round(function.bits_per_key, 4),
        "trees_bits": round(8 * sizes["trees"] / keys, 4),
        "directory_bits": round(8 * sizes["directory"] / keys, 4),
        **timings.fields(),
    }
