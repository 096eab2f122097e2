#!/usr/bin/env python3
"""What an overlay costs: look-ups of the base's keys through it and without it, its own keys, writes, compaction.

    python tools/overlay.py [--keys 1000000]

One JSON line per measurement, times in ns per operation. Base and overlay are measured in turn, and of each thousand
keys the quickest round counts, as whatever else the machine does only adds. `added` is what should stay below 60 ns."""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mphfstore as ms

LOOKED_UP = 100_000
PART, ROUNDS = 1000, 9


def subscript(mapping: Any, keys: list[Any]) -> None:
    for key in keys:
        mapping[key]


def get(mapping: Any, keys: list[Any]) -> None:
    call = mapping.get
    for key in keys:
        call(key)


def contains(mapping: Any, keys: list[Any]) -> None:
    for key in keys:
        key in mapping  # noqa: B015


def quickest(loop: Callable[[Any, list[Any]], None], mappings: list[Any], keys: list[Any]) -> list[float]:
    parts = [keys[begin : begin + PART] for begin in range(0, len(keys), PART)]
    best = [[float("inf")] * len(parts) for _ in mappings]
    for _ in range(ROUNDS):
        for position, mapping in enumerate(mappings):  # all keys of one before any of the other: none warms the caches
            for number, part in enumerate(parts):
                begin = time.perf_counter_ns()
                loop(mapping, part)
                best[position][number] = min(best[position][number], time.perf_counter_ns() - begin)
    return [sum(times) / len(keys) for times in best]


def own_keys(folder: Path, overlay: ms.Overlay, entries: int) -> None:
    """Look-ups of what is in the overlay; how long another reader takes to open it and to catch up."""
    own = [f"own{i}" for i in random.Random(2).sample(range(entries), min(entries, 20_000))]
    say(entries=entries, operation="subscript, own key", overlay=quickest(subscript, [overlay], own)[0])
    begin = time.perf_counter()
    again = ms.Overlay(folder / "base", folder / f"overlay{entries}", durable=False, readonly=True)
    say(entries=entries, operation="open, ms", overlay=1e3 * (time.perf_counter() - begin))
    overlay["one more"] = b""
    begin = time.perf_counter()
    again.refresh()
    say(entries=entries, operation="refresh after one put, ms", overlay=1e3 * (time.perf_counter() - begin))


def say(**measured: Any) -> None:
    print(
        json.dumps({name: round(value, 1) if isinstance(value, float) else value for name, value in measured.items()})
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000, help="of the base")
    options = parser.parse_args()
    say(cpu_count=os.cpu_count(), keys=options.keys)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ms.build(folder / "base", {f"key{i}": b"value %d" % i for i in range(options.keys)}, keys="exact")
        store = ms.open(folder / "base")
        chosen = random.Random(1).sample(range(options.keys), min(LOOKED_UP, options.keys))
        hits, misses = [f"key{i}" for i in chosen], [f"none{i}" for i in chosen]
        for entries in (0, 1_000, 100_000, 1_000_000):
            overlay = ms.Overlay(folder / "base", folder / f"overlay{entries}", durable=False)
            begin = time.perf_counter()
            overlay.update({f"own{i}": b"own %d" % i for i in range(entries)})
            took = time.perf_counter() - begin
            if entries:
                say(entries=entries, operation="update, ns per entry", overlay=1e9 * took / entries)
            for loop in (subscript, get, contains):
                for what, keys in (("hit", hits), ("miss", misses)):
                    if what == "miss" and loop is subscript:
                        continue
                    base, over = quickest(loop, [store, overlay], keys)
                    say(
                        entries=entries,
                        operation=f"{loop.__name__}, {what}",
                        base=base,
                        overlay=over,
                        added=over - base,
                    )
            if entries:
                own_keys(folder, overlay, entries)
        with ms.Overlay(folder / "base", folder / "durable") as overlay:
            begin = time.perf_counter()
            for i in range(300):
                overlay[f"own{i}"] = b""
            say(operation="durable put, ns", overlay=1e9 * (time.perf_counter() - begin) / 300)
        overlay = ms.Overlay(folder / "base", folder / "overlay1000", durable=False)
        begin = time.perf_counter()
        for i in range(10_000):
            overlay[f"own{i}"] = b""
        say(operation="put with durable=False, ns", overlay=1e9 * (time.perf_counter() - begin) / 10_000)
        begin = time.perf_counter()
        overlay.compact()
        took = time.perf_counter() - begin
        say(operation="compact, ns per key", overlay=1e9 * took / len(overlay))


if __name__ == "__main__":
    main()
