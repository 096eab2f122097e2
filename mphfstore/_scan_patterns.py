"""What a scan looks for: from patterns as they are given to a native reader, a prefilter and what indices mean.

    one pattern         a search of its own, in mode "anywhere"
    some patterns       an index in memory, made here: of their hashes and of themselves
    store or filter     as it is; folded, an index in memory of the keys that it stores

Whatever it is, a text of a scan has its keys as bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _open
from ._exact import place_keys
from ._format import Kind, Section, parse
from ._handle import Handle, Membership, write
from ._index import build_index
from ._keys import BytesKeys, KeyBatch, listed
from ._opened import Opened
from ._options import Options
from ._publish import Memory
from ._scan_filter import Prefilter, lengths_of, section_of
from ._source import Source, aligned

Fold = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Dictionary:
    """Keys to look for. numbers: what a hit's index becomes; None: it stays."""

    opened: Opened
    numbers: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Keys."""
        return self.opened.file.header.keys

    @property
    def reader(self) -> Any:
        """The native reader; it keeps what it reads."""
        return self.opened.whole()[0]

    @property
    def false_positive_rate(self) -> float:
        """At which a stretch of the text that is no key, and is looked up, passes for one."""
        file = self.opened.file
        return 0.0 if file.schema.get("keys") == "exact" else 2.0**-file.header.fingerprint_bits

    def known_prefilter(self) -> Prefilter | None:
        """The one that the file has, or that was made before."""
        opened = self.opened
        if opened.prefilter is None and Section.SCAN in opened.file.sections:
            opened.prefilter = Prefilter.of(opened.file.sections[Section.SCAN])
        return opened.prefilter

    def prefilter(self) -> Prefilter:
        """The file's, else one made from the keys that it stores, once. TypeError if it has neither."""
        found = self.known_prefilter()
        if found is None:
            if self.opened.file.schema.get("keys") != "exact":
                raise TypeError(
                    "this file has neither its keys nor a prefilter, one of which mode='anywhere' needs: build it with "
                    "scan=True or keys='exact' (--scan, --keys exact), or scan in mode 'words' or 'windows'"
                )
            found = self.opened.prefilter = Prefilter.of(section_of([self.opened.stored_keys()]))
        return found


@dataclass(frozen=True)
class Single:
    """One pattern of at least one byte; the index of its hits is 0."""

    pattern: bytes
    numbers = None
    false_positive_rate = 0.0

    def __len__(self) -> int:
        return 1


def dictionary(patterns: Any, fold: Fold | None, *, single: bool) -> Dictionary | Single:
    """From whatever `scan` takes. single: whether one pattern alone may become a `Single`.

    Raises ValueError for a pattern of no bytes, TypeError for what is no dictionary, and what `open` raises."""
    if isinstance(patterns, os.PathLike):
        patterns = _open.open(patterns)
    if isinstance(patterns, Handle):
        if not isinstance(patterns, Membership):
            raise TypeError("a bare function does not know its keys: scan for those of a filter or a store")
        return _of_handle(patterns._current(), fold)
    if isinstance(patterns, str | bytes | bytearray | memoryview):
        patterns = [patterns]
    keys = BytesKeys()
    batch = keys.batch(listed(patterns))
    if fold is not None:
        batch = folded(batch, fold)
    if not (lengths_of(batch) > 0).all():
        raise ValueError("an empty pattern occurs everywhere: leave it out")
    return Single(batch[0]) if single and len(batch) == 1 else _of_keys(batch)


def _of_keys(batch: KeyBatch, numbers: NDArray[np.int64] | None = None) -> Dictionary:
    """An index in memory. Of equal keys the first counts. numbers: of the keys, else their positions."""
    keys = BytesKeys()
    index = build_index(batch, keys, Options.of("fast", on_duplicate="first"))
    memory, stored = Memory(), place_keys(batch, keys, index.records)
    write(memory, index, Kind.STORE, keys, fingerprint_bits=8, stored=stored, prefilter=section_of([batch]))
    source = Source(aligned(memory.data))
    records = index.records.astype(np.int64)
    return Dictionary(Opened(parse(source.data), keys, source), records if numbers is None else numbers[records])


def _of_handle(opened: Opened, fold: Fold | None) -> Dictionary:
    if fold is not None and not opened.keys.text:
        raise TypeError("integer keys have no case: leave out fold")
    if fold is None or opened.file.schema.get("keys") != "exact":
        return Dictionary(opened)
    if opened.folded is None:
        batch = folded(opened.stored_keys(), fold)
        present = np.flatnonzero(lengths_of(batch) > 0)
        opened.folded = _of_keys(batch.take(present.astype(np.uint64)), present)
    made: Dictionary = opened.folded
    return made


def folded(batch: KeyBatch, fold: Fold) -> KeyBatch:
    return BytesKeys().batch([fold(batch[i]) for i in range(len(batch))])
