"""`bench.py filter`: membership of 64-bit integers, our filters and the peers that are installed."""

from __future__ import annotations

import argparse
from typing import Any

from .measure import Timings, contains_each, ratio
from .peak import peak_of_build
from .rounds import Benchmark, Record, add_options
from .subject import Filter, check
from .workload import FilterWorkload

# Ratios, each of one of our fields to one of a peer's, taken in this run.
RATIOS = {
    "hit_to_rbloom": ("contains_hit_ns", "rbloom", "contains_hit_ns"),
    "miss_to_rbloom": ("contains_miss_ns", "rbloom", "contains_miss_ns"),
    "hit_to_set": ("contains_hit_ns", "set", "contains_hit_ns"),
    "bits_to_rbloom": ("bits_per_key", "rbloom", "bits_per_key"),
    "bits_to_pyfusefilter": ("bits_per_key", "pyfusefilter", "bits_per_key"),
}


def add_command(commands: Any) -> None:
    parser = commands.add_parser("filter", help=str(__doc__).split(": ", 1)[1])
    add_options(parser)
    parser.add_argument("--bits", type=int, default=8, help="a false positive in 2^BITS (default: %(default)s)")
    parser.set_defaults(run=run)


class FilterRun:
    def __init__(self, subject: Filter, bits: int) -> None:
        self.subject, self._bits = subject, bits
        self._timings = Timings()
        self._fields: Record = {"fingerprint_bits": bits}

    def measure_peak(self, arguments: argparse.Namespace) -> None:
        numbers = arguments.keys, arguments.seed, arguments.threads, self._bits
        self._fields |= peak_of_build("filter", self.subject.name, *numbers)

    def build(self, work: FilterWorkload) -> None:
        count = len(work.keys)
        self._built = self._timings.run("build", count, lambda: self.subject.build(work, self._bits))

    def weigh(self, work: FilterWorkload) -> None:
        """Its size and its errors: none among the keys, and about 2^-bits of all others."""
        size, count = self.subject.size(self._built), len(work.keys)
        missing = sum(key not in self._built for key in work.query_list)
        check(missing == 0, f"{self.subject.name}: {missing} keys are not found")
        rate = sum(key in self._built for key in work.absent_list) / max(1, count)
        check(rate <= 2 * 2.0**-self._bits + 20 / count, f"{self.subject.name}: {rate:.2%} false positives")
        many = self.subject.contains_many(self._built)
        if many is not None:
            check(bool(many(work.queries).all()), f"{self.subject.name}: keys are not found in a batch")
            same = int(many(work.absent).sum()) == round(rate * count)
            check(same, f"{self.subject.name}: a batch has other false positives than single calls")
        self._fields |= {"bytes": size, "bits_per_key": round(8 * size / max(1, count), 3)}
        self._fields |= {"false_positive_rate": rate, **self.subject.details(self._built)}

    def look_up(self, work: FilterWorkload) -> None:
        run, count = self._timings.run, len(work.keys)
        contains_each(self._built, work.query_list)  # the last subject has filled the caches
        run("contains_hit", count, lambda: contains_each(self._built, work.query_list))
        run("contains_miss", count, lambda: contains_each(self._built, work.absent_list))
        many = self.subject.contains_many(self._built)
        if many is not None:
            run("contains_many_hit", count, lambda: many(work.queries))
            run("contains_many_miss", count, lambda: many(work.absent))

    def finish(self) -> Record:
        about = {"subject": self.subject.name, "version": self.subject.version()}
        return about | self._fields | self._timings.fields()


def run(arguments: argparse.Namespace) -> None:
    bits = arguments.bits
    benchmark = Benchmark("filter", arguments)
    work = FilterWorkload.make(arguments.keys, arguments.seed)
    runs = benchmark.start(lambda subject: FilterRun(subject, bits), lambda subject: subject.refuses(bits))
    benchmark.step(runs, "peak memory", lambda one: one.measure_peak(arguments))
    for number in range(arguments.repeats):
        benchmark.step(runs, f"build {number + 1}", lambda one: one.build(work))
    benchmark.step(runs, "size and errors", lambda one: one.weigh(work))
    for number in range(arguments.repeats):
        benchmark.step(runs, f"look-ups {number + 1}", lambda one: one.look_up(work))
    overhead = benchmark.overhead(work.query_list, 1)
    records = benchmark.records = benchmark.records | {one.subject.name: one.finish() for one in runs}
    for one in runs:
        if one.subject.ours:
            records[one.subject.name]["ratios"] = {
                name: ratio(records[one.subject.name].get(field), records.get(peer, {}).get(peer_field))
                for name, (field, peer, peer_field) in RATIOS.items()
            }
    benchmark.emit({"loop_ns": overhead["loop_ns"]})
