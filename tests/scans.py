"""Scans as one would write them without a care for time, and what their tests share."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

import mphfstore as ms
from mphfstore import _scan
from mphfstore._native import lib

Hit = tuple[int, int, int]
ISAS = [name for name in ("baseline", "avx2", "avx512", "neon") if lib.mphf_isa_available(name.encode())]


def listed(hits: ms.Hits) -> list[Hit]:
    """Hits as tuples of start, length, index."""
    return list(zip(hits.start.tolist(), hits.length.tolist(), hits.index.tolist(), strict=True))


def joined(parts: Iterable[ms.Hits]) -> list[Hit]:
    return [hit for part in parts for hit in listed(part)]


def numbered(patterns: Sequence[bytes]) -> dict[bytes, int]:
    """The first position of every pattern."""
    return {pattern: i for i, pattern in reversed(list(enumerate(patterns)))}


def anywhere(text: bytes, patterns: Sequence[bytes]) -> list[Hit]:
    return sorted(
        (at, len(pattern), i)
        for pattern, i in numbered(patterns).items()
        for at in range(len(text))
        if text.startswith(pattern, at)
    )


def windows(text: bytes, patterns: Sequence[bytes], widths: Iterable[int]) -> list[Hit]:
    return [hit for hit in anywhere(text, patterns) if hit[1] in set(widths)]


def characters(text: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Where each begins, itself and its bytes; a byte that is no UTF-8 is one of its own."""
    at = 0
    for character in text.decode("utf-8", "surrogateescape"):
        raw = character.encode("utf-8", "surrogateescape")
        yield at, character, raw
        at += len(raw)


def is_letter(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def words(text: bytes, patterns: Sequence[bytes], grams: Iterable[int]) -> list[Hit]:
    numbers, found = numbered(patterns), []
    spans: list[tuple[int, int]] = []
    for at, character, raw in characters(text):
        if is_letter(character):
            if spans and spans[-1][1] == at:
                spans[-1] = spans[-1][0], at + len(raw)
            else:
                spans.append((at, at + len(raw)))
    for i in range(len(spans)):
        for size in sorted(set(grams)):
            gram = spans[i : i + size]
            if len(gram) < size:
                continue
            key = text[slice(*gram[0])]
            for (_, end), (begin, after) in itertools.pairwise(gram):
                gap = text[end:begin]
                key += (gap if gap.strip(b" \t\n\v\f\r") else b" ") + text[begin:after]
            if key in numbers:
                found.append((gram[0][0], gram[-1][1] - gram[0][0], numbers[key]))
    return found


def fold(text: bytes) -> tuple[bytes, dict[int, int]]:
    """Folded; and from offsets in that to those in the text, but for those within a character that has become another
    length or several."""
    out, offsets = bytearray(), {0: 0}
    for at, character, raw in characters(text):
        new = character.casefold().encode("utf-8", "surrogateescape")
        steps = range(1, len(new) + 1) if len(new) == len(raw) and len(character.casefold()) == 1 else ()
        offsets |= {len(out) + step: at + step for step in steps} | {len(out) + len(new): at + len(raw)}
        out += new
    return bytes(out), offsets


def folded(find: Callable[..., list[Hit]], text: bytes, patterns: Sequence[bytes], *rest: Any) -> list[Hit]:
    new, offsets = fold(text)
    hits = find(new, [fold(pattern)[0] for pattern in patterns], *rest)
    return [
        (offsets[at], offsets[at + length] - offsets[at], index)
        for at, length, index in hits
        if at in offsets and at + length in offsets
    ]


def with_stretch(size: int) -> pytest.MonkeyPatch:
    """Stretches of so few bytes, until `undo`."""
    patch = pytest.MonkeyPatch()
    patch.setattr(_scan, "STRETCH", size)
    return patch
