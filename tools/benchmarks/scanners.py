"""Who finds the patterns of a dictionary in a text: ours, in every mode, and the peers. All give overlapping
occurrences, or say that they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .subject import Subject

Find = Callable[[bytes], int]  # how many there are


class Scan(Subject):
    """`modes` are those that it has; `overlapping`: whether it finds every occurrence. Of patterns `most` at a time;
    `bytes_at_most` of a text, where more would take minutes."""

    modes: Sequence[str] = ("anywhere",)
    overlapping = True
    most = 1 << 60
    bytes_at_most = 1 << 60

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        """Ready to look; `path` is a store of the patterns, which only ours needs."""
        raise NotImplementedError


class Ours(Scan):
    """From a store that keeps its keys and has a prefilter: preparing is opening it."""

    ours = True
    module = "mphfstore"
    distribution = "mphfstore"
    modes = ("anywhere", "words", "windows")

    def __init__(self, name: str, isa: str | None = None) -> None:
        self.name, self._isa = name, isa

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        import mphfstore

        width = len(patterns[0]) if mode == "windows" else None
        scanner = mphfstore.Scanner(mphfstore.open(path), mode=mode, width=width)
        return lambda text: len(scanner.scan(text, threads=1))


class OursOfFingerprints(Ours):
    """From a filter of 32-bit fingerprints, with a prefilter: a hit is false with probability 2^-32."""

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        return super().prepare(patterns, mode, f"{path}.filter")


class OursOfList(Ours):
    """From the list of patterns itself: preparing builds an index in memory."""

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        import mphfstore

        width = len(patterns[0]) if mode == "windows" else None
        scanner = mphfstore.Scanner(patterns, mode=mode, width=width)
        return lambda text: len(scanner.scan(text, threads=1))


class Daachorse(Scan):
    name = module = distribution = "daachorse"
    bytes_at_most = 10_000_000

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        import daachorse

        automaton = daachorse.DoubleArrayAhoCorasick([pattern.encode() for pattern in patterns])
        return lambda text: len(automaton.find_overlapping(text))


class AhoCorasickRs(Scan):
    name = module = distribution = "ahocorasick_rs"
    bytes_at_most = 10_000_000

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        import ahocorasick_rs

        automaton = ahocorasick_rs.AhoCorasick(list(patterns), store_patterns=False)
        return lambda text: len(automaton.find_matches_as_indexes(text.decode(), overlapping=True))


class Hyperscan(Scan):
    """Literals; it gives ends alone, which is enough to count them."""

    name = module = distribution = "hyperscan"
    most = 100_000
    bytes_at_most = 10_000_000

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        import hyperscan

        database = hyperscan.Database()
        literals = [pattern.encode() for pattern in patterns]
        database.compile(expressions=literals, ids=list(range(len(literals))), elements=len(literals), literal=True)

        def find(text: bytes) -> int:
            count = 0

            def found(*_: Any) -> None:
                nonlocal count
                count += 1

            database.scan(text, match_event_handler=found)
            return count

        return find


class FlashText2(Scan):
    """Words; it takes the longest of overlapping ones."""

    name = module = distribution = "flashtext2"
    overlapping = False
    modes = ("words",)
    bytes_at_most = 10_000_000

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        import flashtext2

        processor = flashtext2.KeywordProcessor(case_sensitive=True)
        processor.add_keywords_from_iter(list(patterns))
        return lambda text: len(processor.extract_keywords(text.decode()))


class SearchSorted(Scan):
    """All windows of a width as rows of an array, looked for in the sorted patterns."""

    name = "numpy.searchsorted"
    module = distribution = "numpy"
    modes = ("windows",)
    bytes_at_most = 1_000_000

    def prepare(self, patterns: Sequence[str], mode: str, path: str) -> Find:
        width = len(patterns[0])
        keys = np.sort(np.array(list(patterns), f"S{width}"))

        def find(text: bytes) -> int:
            rows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(text, np.uint8), width)
            windows = np.ascontiguousarray(rows).view(f"S{width}").reshape(-1)
            at = np.minimum(keys.searchsorted(windows), len(keys) - 1)
            return int((keys[at] == windows).sum())

        return find


SCANNERS: tuple[Scan, ...] = (
    Ours("mphfstore"), OursOfFingerprints("mphfstore fingerprints"), OursOfList("mphfstore list"), Daachorse(),
    AhoCorasickRs(), Hyperscan(), FlashText2(), SearchSorted(),
)  # fmt: skip
