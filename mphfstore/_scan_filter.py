"""The prefilter of a dictionary (FORMAT.md §8): made from its keys, or read from a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import sound
from ._keys import KeyBatch
from ._native import ffi, lib
from ._source import loaded

STARTS = 1 << 16
LONG = 16  # lengths from here on are listed
HEADS = 8, 18  # log2 of their number, at least and at most
KEYS_PER_WORD = 4  # at most, but for what the filter's other elements add


@dataclass(frozen=True)
class Prefilter:
    """A native prefilter and its memory. longest: no key has more bytes."""

    native: Any
    section: Any  # its bytes
    longest: int

    @classmethod
    def of(cls, section: Any) -> Prefilter:
        """From a file's section. FormatError if its sizes contradict each other."""
        data = loaded(section)
        memory = ffi.from_buffer("uint8_t[]", np.frombuffer(data, np.uint8))
        status = ffi.new("int *")
        native = lib.mphf_scan_filter_new(memory, len(memory), status)
        if status[0] == lib.STATUS_NO_MEMORY:
            raise MemoryError
        sound(status[0])
        native = ffi.gc(native, partial(_free, memory=memory))
        return cls(native, data, lib.mphf_scan_longest(native))


def _free(native: Any, memory: object) -> None:
    lib.mphf_scan_filter_free(native)


def section_of(batches: Iterable[KeyBatch]) -> NDArray[np.uint8]:
    """The section's bytes for the keys of all batches, whatever their order. Those of no bytes do not count."""
    batches = list(batches)
    lengths = np.concatenate([np.empty(0, np.uint64), *map(lengths_of, batches)])
    lengths = lengths[lengths > 0]
    count = len(lengths)
    listed = np.unique(lengths[lengths >= LONG])
    short = bool(count) and int(lengths.min()) < 4
    heads = min(max((4 * count - 1).bit_length(), HEADS[0]), HEADS[1]) if count else HEADS[0]
    words = max(1, (-(-count // KEYS_PER_WORD) - 1).bit_length()) if count else 1
    size = 16 + 8 * len(listed) + STARTS * short + (4 << heads) + (8 << words)
    section = np.zeros(size, np.uint8)
    section[:16] = np.array([heads, words, short, len(listed)], "<u4").view(np.uint8)
    section[16 : 16 + 8 * len(listed)] = listed.astype("<u8").view(np.uint8)
    for batch in batches:
        sound(lib.mphf_scan_filter_fill(ffi.from_buffer("uint8_t[]", section), size, batch.native()))
    return section


def lengths_of(batch: KeyBatch) -> NDArray[np.uint64]:
    """Of every key of a batch."""
    if batch.offsets is not None:
        return np.diff(batch.offsets)
    return batch.spelled_out()[1]
