#!/usr/bin/env python3
"""Looks for the parameters of the presets: `python tools/sweep.py > sweep.jsonl`, some minutes to an hour.

Chained seeds over a grid of leaf size, bucket size, fanouts and room, each point built and queried as by `bench.py
mphf` (records of benchmark "sweep", one a line; `tools/plot.py` draws them). At the end, on standard error, the
points that no other beats in bits, build and look-up time, and for each target of TARGETS the cheapest that meets
it.

Room is what trades bits for build time; leaf and bucket size and fanouts decide how many nodes a look-up passes."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks import record
from benchmarks.mphf import bench, options_of
from benchmarks.rounds import Record

from mphfstore import BuildError


class Target(NamedTuple):
    """What a preset has to keep to, and what is best then."""

    bits: float
    build: float
    single: float
    batched: float
    best: str


TARGETS = {
    "quick": Target(1.70, 80, 60, 25, "build_ns"),
    "fast": Target(1.65, 400, 30, 16, "single_ns"),
    "balanced": Target(1.62, 160, 45, 20, "build_ns"),
    "compact": Target(1.50, 190, 90, 35, "build_ns"),
    "smallest": Target(1.470, 500, 100, 40, "build_ns"),
}

# Leaf sizes, bucket sizes, fanouts, (leaf room, split room) in 1/256 bit, root bits. Fanouts that make numbers of more
# than 24 bits are left out by themselves.
GRIDS = {
    "small": (
        (9, 10, 11, 12, 13, 14, 16), (64, 80, 100, 130, 160),
        ("3.3.4", "4.3.4", "5.3.4", "6.3.4", "7.4.4", "8.4.4"), ((100, 150), (150, 150), (150, 220), (220, 256)), (4,),
    ),
    "large": (
        (10, 11, 12, 13, 14, 16), (500, 1000, 2000, 3000),
        ("4.4.4", "5.4.4", "6.4.4", "4.5.4"), ((26, 26), (51, 77), (77, 128), (77, 200), (128, 150), (128, 256)), (6,),
    ),
}  # fmt: skip


def points(grid: str) -> Iterator[str]:
    for leaf, bucket, fanouts, (leaf_room, split_room), root_bits in itertools.product(*GRIDS[grid]):
        yield f"chained:{leaf}:{bucket}:{fanouts}:{leaf_room}:{split_room}:{root_bits}"


def dominated(one: Record, others: list[Record]) -> bool:
    fields = ("bits_per_key", "build_ns", "single_ns")
    return any(all(other[f] <= one[f] for f in fields) and any(other[f] < one[f] for f in fields) for other in others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "grids", nargs="*", default=list(GRIDS), help="of %(default)s, or points as bench.py takes them"
    )
    parser.add_argument("--keys", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    results: list[Record] = []
    about = {"keys": arguments.keys, "threads": 1, "repeats": arguments.repeats, **record.environment()}
    for point in itertools.chain.from_iterable(points(grid) if grid in GRIDS else [grid] for grid in arguments.grids):
        try:
            result = bench(point, options_of(point, 1), arguments.keys, arguments.repeats, arguments.seed)
        except BuildError:
            continue
        results.append(result)
        record.emit({"benchmark": "sweep", **result, **about})
    say = sys.stderr.write
    say("no other is smaller, quicker to build and quicker to ask:\n")
    for one in sorted(results, key=lambda one: one["bits_per_key"]):
        if not dominated(one, results):
            say(line(one))
    for name, target in TARGETS.items():
        limits = zip(("bits_per_key", "build_ns", "single_ns", "batched_ns"), target, strict=False)
        bounds = dict(limits)
        fit = [one for one in results if all(one[field] <= bound for field, bound in bounds.items())]
        say(f"{name}: " + (line(min(fit, key=lambda one: one[target.best])) if fit else "none\n"))


def line(one: Record) -> str:
    return (
        f"{one['subject']}  {one['bits_per_key']:.4f} bits, build {one['build_ns']:.0f} ns, "
        f"look-up {one['single_ns']:.1f}, batched {one['batched_ns']:.1f}\n"
    )


if __name__ == "__main__":
    main()
