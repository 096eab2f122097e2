"""`bench.py scan`: the occurrences of a dictionary's keys in texts, ours and the peers that are installed."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import record
from .measure import ratio
from .scanners import SCANNERS, Find, Scan
from .subject import check, chosen, skipped
from .texts import Words, dna, letters

WIDTH = 31  # of windows


@dataclass(frozen=True)
class Case:
    """Some patterns and a text. Every subject that has the mode looks for them."""

    mode: str
    text_kind: str
    patterns: list[str]
    text: bytes

    def name(self) -> str:
        return f"{self.mode}, {self.text_kind}, {len(self.patterns)} patterns"


def add_command(commands: Any) -> None:
    parser = commands.add_parser("scan", help=str(__doc__).split(": ", 1)[1])
    parser.add_argument("--keys", type=int, nargs="+", default=[1000, 100_000, 1_000_000], metavar="N", help="patterns")
    parser.add_argument("--bytes", type=int, default=50_000_000, help="of a text; peers get less where theirs is slow")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", nargs="+", default=["anywhere", "words", "windows"])
    parser.add_argument("--subjects", nargs="+", default=[], metavar="NAME", help="measure these only")
    parser.set_defaults(run=run)


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Anywhere: words in text of words, and in random letters; words; windows of a sequence, a third of which is
    known."""
    seed, size, most = arguments.seed, arguments.bytes, max(arguments.keys)
    if {"anywhere", "words"} & set(arguments.modes):
        words = Words(most, seed)
        dense, sparse = words.text(size, seed), letters(size, seed)
        for count in arguments.keys if "anywhere" in arguments.modes else ():
            yield Case("anywhere", "dense", words.long(count, seed), dense)
            yield Case("anywhere", "sparse", words.long(count, seed), sparse)
        if "words" in arguments.modes:
            yield Case("words", "dense", words.all(most), dense)
    if "windows" in arguments.modes:
        sequence = dna(size, seed)
        known = sequence[: len(sequence) // 3]
        starts = range(0, len(known) - WIDTH, max(1, (len(known) - WIDTH) // most))
        patterns = list(dict.fromkeys(known[at : at + WIDTH].decode() for at in starts))[:most]
        yield Case("windows", "DNA", patterns, sequence)


class Run:
    """One subject in one case."""

    def __init__(self, subject: Scan, case: Case, path: Path) -> None:
        self._subject, self._case, self._path = subject, case, str(path)
        self.text = case.text[: subject.bytes_at_most]

    def measure(self, repeats: int) -> dict[str, Any]:
        """`prepare_s`; `prepare_bytes`, the resident memory that it and a first megabyte add; `mb_per_s` of CPU time;
        `hits` and the bytes that they are in."""
        before, cpu = record.resident(), time.process_time()
        find: Find = self._subject.prepare(self._case.patterns, self._case.mode, self._path)
        prepared = time.process_time() - cpu
        find(self.text[: 1 << 20])  # a mapping is in memory only once it is used
        after = record.resident()
        times, counts = [], set()
        for _ in range(repeats):
            cpu = time.process_time()
            counts.add(find(self.text))
            times.append(time.process_time() - cpu)
        check(len(counts) == 1, f"{self._subject.name}: other hits every time")
        return {
            "prepare_s": round(prepared, 3), "prepare_bytes": max(0, after - before),
            "mb_per_s": round(len(self.text) / statistics.median(times) / 1e6, 1), "bytes": len(self.text),
            "hits": counts.pop(),
        }  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    subjects, environment = chosen(SCANNERS, arguments.subjects), record.environment()
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases(arguments)):
            record.say(f"scan: {case.name()}")
            path = Path(folder, f"{number}.mph")
            _build(case, path, arguments.seed)
            records = {
                one.name: _measured(one, case, path, arguments.repeats) for one in subjects if case.mode in one.modes
            }
            _compare(records)
            common = {"mode": case.mode, "text": case.text_kind, "patterns": len(case.patterns)}
            options = {"seed": arguments.seed, "repeats": arguments.repeats}
            for one in records.values():
                record.emit({"benchmark": "scan", **common, **one, **options, **environment})


def _measured(subject: Scan, case: Case, path: Path, repeats: int) -> dict[str, Any]:
    reason = subject.lacks()
    if reason is None and len(case.patterns) > subject.most:
        reason = f"{len(case.patterns)} patterns take it too long"
    if reason is None:
        record.say(f"scan: {subject.name}")
        try:
            fields = Run(subject, case, path).measure(repeats)
            return {"subject": subject.name, "version": subject.version(), **fields}
        except Exception as error:
            if subject.ours:
                raise
            reason = f"{type(error).__name__}: {error}"
    return skipped(subject.name, reason)


def _compare(records: dict[str, dict[str, Any]]) -> None:
    """Who finds every occurrence finds as many in the same text. Ours get `ratio_to_best_peer`."""
    measured = {subject: records[subject.name] for subject in SCANNERS if "hits" in records.get(subject.name, {})}
    expected: dict[int, int] = {}
    for subject, one in measured.items():
        if subject.overlapping:
            right = expected.setdefault(one["bytes"], one["hits"])
            check(one["hits"] == right, f"{subject.name}: {one['hits']} hits, not {right}")
    best = max((one["mb_per_s"] for subject, one in measured.items() if not subject.ours), default=None)
    for subject, one in measured.items():
        if subject.ours:
            one["ratio_to_best_peer"] = ratio(one["mb_per_s"], best)


def _build(case: Case, path: Path, seed: int) -> None:
    """The store that ours opens; without mphfstore there is none."""
    try:
        import mphfstore
    except ImportError:
        return
    options: dict[str, Any] = {"values": None, "scan": True, "preset": "fast", "seed": seed}
    mphfstore.build(path, case.patterns, keys="exact", **options)
    mphfstore.build(f"{path}.filter", case.patterns, fingerprint_bits=32, **options)
