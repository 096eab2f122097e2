"""`bench.py store`: stores of 16-character keys and 8-byte values, ours and the peers that are installed."""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .cold import cold, files_of
from .measure import Timings, call_each, index_each, index_each_absent, percentiles, ratio
from .peak import peak_of_build
from .rounds import Benchmark, Record, add_options
from .subject import Handle, Store, check
from .workload import StoreWorkload

CHECKED = 1000  # single look-ups compared with what they should give; batches are compared whole
FALSE_POSITIVES = 20  # at most, among as many absent keys: at 16 bits of fingerprint two are a rare sight

# Ratios, each of one of our fields to one of a peer's, taken in this run.
RATIOS = {
    "hit_to_cdbx": ("index_hit_ns", "cdbx", "index_hit_ns"),
    "hit_to_lmdb": ("index_hit_ns", "lmdb", "get_hit_ns"),
    "miss_to_cdbx": ("index_miss_ns", "cdbx", "index_miss_ns"),
    "get_miss_to_cdbx": ("get_miss_ns", "cdbx", "get_miss_ns"),
    "batch_list_to_dict": ("batch_list_ns", "dict", "index_hit_ns"),
    "batch_array_to_dict": ("batch_array_ns", "dict", "index_hit_ns"),
    "build_to_cdbx": ("build_ns", "cdbx", "build_ns"),
}


def add_command(commands: Any) -> None:
    parser = commands.add_parser("store", help=str(__doc__).split(": ", 1)[1])
    add_options(parser)
    which = "the stored keys' objects, or objects of their own (default: %(default)s)"
    parser.add_argument("--queries", choices=("same", "fresh"), default="same", help=which)
    parser.add_argument("--sample", type=int, default=100_000, help="look-ups timed one by one (default: %(default)s)")
    parser.add_argument("--cold-lookups", type=int, default=50, help="of hits, and of misses (default: %(default)s)")
    parser.add_argument("--directory", help="where files are made (default: that for temporary files)")
    parser.set_defaults(run=run)


class StoreRun:
    def __init__(self, subject: Store, path: Path) -> None:
        self.subject, self._path = subject, path
        self._timings = Timings()
        self._fields: Record = {"absent": subject.absent, "lookup": subject.lookup}

    def measure_peak(self, arguments: argparse.Namespace) -> None:
        self._fields |= peak_of_build("store", self.subject.name, arguments.keys, arguments.seed, arguments.threads)

    def build(self, work: StoreWorkload) -> None:
        self._timings.run("build", len(work.keys), lambda: self.subject.build(work, self._path))

    def weigh(self, work: StoreWorkload) -> None:
        if self.subject.persistent:
            size = sum(file.stat().st_size for file in files_of(self._path))
            self._fields |= {"file_bytes": size, "file_bits_per_key": round(8 * size / len(work.keys), 3)}
        self._fields |= self.subject.details(self._path)

    def look_up_cold(self, work: StoreWorkload, count: int, seed: int) -> None:
        if not self.subject.persistent or count == 0:
            return
        rng = np.random.default_rng(seed)
        hits, misses = (
            self.subject.prepare([keys[i] for i in rng.permutation(len(keys))[: count + 1].tolist()])
            for keys in (work.keys, work.absent)
        )
        kinds = {"hit": hits[1:], "miss": misses[1:]}
        self._fields["cold"] = cold(self._path, self.subject.open, hits[0], kinds)

    def open(self, work: StoreWorkload) -> None:
        """Opens the store for all look-ups that follow, and checks it."""
        self._handle: Handle = self.subject.open(self._path)
        self._hits, self._misses = (self.subject.prepare(keys) for keys in (work.queries, work.absent))
        for key, expected in zip(self._hits[:CHECKED], work.expected[:CHECKED].tolist(), strict=True):
            found = self._handle.get(key)
            right = found is not None and self.subject.number(found) == expected
            check(right, f"{self.subject.name}: {key!r} has {found!r}")
        if self.subject.absent != "undefined":
            wrong = sum(self._handle.get(key) is not None for key in self._misses[:CHECKED])
            limit = 0 if self.subject.absent == "exact" else FALSE_POSITIVES
            check(wrong <= limit, f"{self.subject.name}: finds {wrong} of {CHECKED} absent keys")
        for name, call in self._handle.batches.items():
            found = call(_batch(name, work))
            numbers = np.frombuffer(b"".join(found), "<u8") if isinstance(found, list) else found
            check(np.array_equal(numbers, work.expected), f"{self.subject.name}: {name} gives other values")

    def look_up(self, work: StoreWorkload) -> None:
        """Looks up every key once in every way, and once before: the last subject has filled the caches."""
        run, count, handle = self._timings.run, len(self._hits), self._handle
        call_each(handle.get, self._hits)
        run("get_hit", count, lambda: call_each(handle.get, self._hits))
        run("get_miss", count, lambda: call_each(handle.get, self._misses))
        if handle.mapping is not None:
            run("index_hit", count, lambda: index_each(handle.mapping, self._hits))
            run("index_miss", count, lambda: index_each_absent(handle.mapping, self._misses))
        for name, call in handle.batches.items():
            keys = _batch(name, work)
            run(name, count, partial(call, keys))

    def look_up_one_by_one(self, sample: int) -> None:
        self._fields |= percentiles("get_hit", self._handle.get, self._hits[:sample])
        self._fields |= percentiles("get_miss", self._handle.get, self._misses[:sample])

    def finish(self) -> Record:
        self._handle.close()
        about = {"subject": self.subject.name, "version": self.subject.version()}
        return about | self._fields | self._timings.fields()


def _batch(name: str, work: StoreWorkload) -> Any:
    return work.query_array if name == "batch_array" else work.queries


def run(arguments: argparse.Namespace) -> None:
    benchmark = Benchmark("store", arguments)
    work = StoreWorkload.make(arguments.keys, arguments.seed, arguments.queries == "fresh")
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        runs = benchmark.start(
            lambda subject: StoreRun(subject, Path(folder).resolve() / subject.name.replace(" ", "-"))
        )
        benchmark.step(runs, "peak memory", lambda one: one.measure_peak(arguments))
        for number in range(arguments.repeats):
            benchmark.step(runs, f"build {number + 1}", lambda one: one.build(work))
        benchmark.step(runs, "size", lambda one: one.weigh(work))
        cold_options = arguments.cold_lookups, arguments.seed
        benchmark.step(runs, "cold look-ups", lambda one: one.look_up_cold(work, *cold_options))
        benchmark.step(runs, "opening", lambda one: one.open(work))
        for number in range(arguments.repeats):
            benchmark.step(runs, f"look-ups {number + 1}", lambda one: one.look_up(work))
        overhead = benchmark.overhead(work.queries, arguments.sample)
        benchmark.step(runs, "single look-ups", lambda one: one.look_up_one_by_one(arguments.sample))
        benchmark.records |= {one.subject.name: one.finish() for one in runs}
    for one in runs:
        if one.subject.ours:
            benchmark.records[one.subject.name]["ratios"] = _ratios(one.subject.name, benchmark.records)
    benchmark.emit({"queries": arguments.queries, **overhead})


def _ratios(name: str, records: dict[str, Record]) -> Record:
    """Those named in RATIOS, null where either side was not measured; and file sizes, to the smallest peer's file that
    tells absent keys for certain, and to the smallest of all."""
    ours = records[name]
    ratios: Record = {
        ratio_name: ratio(ours.get(field), records.get(peer, {}).get(peer_field))
        for ratio_name, (field, peer, peer_field) in RATIOS.items()
    }
    for kind, counted in (("exact_peer", {"exact"}), ("peer", {"exact", "probable", "undefined"})):
        sizes = {
            peer: one["file_bytes"]
            for peer, one in records.items()
            if "file_bytes" in one and "ratios" not in one and "preset" not in one and one["absent"] in counted
        }
        smallest = min(sizes, key=lambda peer: sizes[peer], default=None)
        ratios[f"smallest_{kind}"] = smallest
        ratios[f"file_to_smallest_{kind}"] = None if smallest is None else ratio(ours["file_bytes"], sizes[smallest])
    return ratios
