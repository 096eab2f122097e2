"""Byte strings in the order of their indices: rows where all have one width, else a blob behind Elias-Fano offsets; and
which of them are equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._format import Section, elias_fano_words
from ._keys import KeyBatch, gather, offsets_of
from ._native import ffi, lib

CHUNK = 1 << 16  # strings gathered at a time
MAX_WIDTH = 1 << 31

Words = NDArray[np.uint64]
Sections = dict[Section, tuple[int, Iterator[NDArray[np.uint8]]]]


@dataclass(frozen=True)
class Strings:
    """String i is `blob[offsets[i]:offsets[i + 1]]`."""

    blob: NDArray[np.uint8]
    offsets: Words

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> Words:
        return np.diff(self.offsets)

    def in_order(self, order: Words) -> tuple[Words, Iterator[NDArray[np.uint8]]]:
        """Offsets of the strings `order`, closed up, and their bytes in chunks."""
        offsets = offsets_of(self.lengths()[order])
        return offsets, (
            gather(self.blob, ids, int(offsets[i * CHUNK + len(ids)] - offsets[i * CHUNK]), offsets=self.offsets)
            for i, ids in enumerate(parts(order))
        )

    def sections(self, order: Words, rows: Section, offsets: Section, blob: Section) -> tuple[int | None, Sections]:
        """Their width, None if it varies, and the sections of rows, or of offsets and blob."""
        lengths = self.lengths()
        same = len(lengths) and lengths.min() == lengths.max() <= MAX_WIDTH
        if same:  # no offsets to make
            return int(lengths[0]), rows_section(rows, self.blob, int(lengths[0]), order)
        bounds, chunks = self.in_order(order)
        size = int(bounds[-1])
        width = size // max(1, len(order))
        if np.all(np.diff(bounds) == width) and width <= MAX_WIDTH:
            return width, {rows: (size, chunks)}
        return None, {offsets: words_section(elias_fano_words(bounds)), blob: (size, chunks)}


def parts(order: Words) -> Iterator[Words]:
    return (order[i : i + CHUNK] for i in range(0, len(order), CHUNK))


def rows_section(section: Section, rows: NDArray[np.uint8], width: int, order: Words) -> Sections:
    """The rows `order` of some of one width."""
    chunks = (gather(rows, ids, len(ids) * width, width=width) for ids in parts(order))
    return {section: (len(order) * width, chunks)}


def words_section(words: Words) -> tuple[int, Iterator[NDArray[np.uint8]]]:
    return words.nbytes, iter([words.view(np.uint8)])


def packed(numbers: Words, bits: int) -> NDArray[np.uint8]:
    """Numbers of at most 57 bits one after the other, then 8 bytes of zeros."""
    out = np.zeros((len(numbers) * bits + 7) // 8 + 8, np.uint8)
    lib.mphf_pack(ffi.from_buffer("uint64_t[]", numbers), len(numbers), bits, ffi.from_buffer("uint8_t[]", out))
    return out


def distinct(strings: Strings, order: Words) -> tuple[Words, Words]:
    """Among the strings `order`: the first of every kind, and for each string which of these it equals.

    Equal hashes are not taken for equal strings: if any two differ under one, Python's dictionary decides."""
    offsets, chunks = strings.in_order(order)
    blob = np.concatenate([np.empty(0, np.uint8), *chunks])
    batch = KeyBatch(blob, len(order), offsets)
    hi, lo = np.empty(len(order), np.uint64), np.empty(len(order), np.uint64)
    words = (ffi.from_buffer("uint64_t[]", half) for half in (hi, lo))
    lib.mphf_hash_batch(batch.native(), 0, *words)
    pairs = np.rec.fromarrays([hi, lo])
    _, first, group = np.unique(pairs, return_index=True, return_inverse=True)
    representative = first[group.reshape(-1)].astype(np.uint64)
    if not _same(strings, order, order[representative]):
        seen: dict[bytes, int] = {}
        representative = np.fromiter((seen.setdefault(batch[i], i) for i in range(len(order))), np.uint64, len(order))
    firsts = np.flatnonzero(representative == np.arange(len(order), dtype=np.uint64)).astype(np.uint64)
    return firsts, np.searchsorted(firsts, representative).astype(np.uint64)


def _same(strings: Strings, these: Words, those: Words) -> bool:
    """Whether strings are equal pair by pair."""
    lengths = strings.lengths()
    if not np.array_equal(lengths[these], lengths[those]):
        return False
    pairs = zip(strings.in_order(these)[1], strings.in_order(those)[1], strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
