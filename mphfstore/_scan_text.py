"""Texts that are scanned: as bytes in memory; folded, with the way back to the text's own offsets; as code points of a
`str`."""

from __future__ import annotations

import itertools
import mmap
import os
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._native import ffi
from ._source import flat

# The planes that Unicode uses, but for private ones, which have no letters.
ASSIGNED = range(0x40000), range(0xE0000, 0xE1000)
BLOCK = 1 << 20  # bytes of which code points are counted at a time

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]


def text_bytes(text: Any) -> Bytes:
    """The bytes of a text, where they lie if they do so in a row: of a `str` its UTF-8, of a path the file's.

    Raises TypeError for what is no text, OSError for a file that cannot be read."""
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    elif isinstance(text, os.PathLike):
        with open(text, "rb") as file:
            if not os.fstat(file.fileno()).st_size:  # an empty file, or a pipe, or what the kernel makes up
                return np.frombuffer(file.read(), np.uint8)
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    elif isinstance(text, np.ndarray) and text.dtype != np.uint8:
        raise TypeError(f"a text as array has dtype uint8, not {text.dtype}")
    try:
        view = memoryview(text)
    except TypeError:
        raise TypeError(f"a text is bytes, str, an array, a buffer or a path, not {type(text).__name__}") from None
    return np.frombuffer(flat(view), np.uint8)


def code_points(data: Bytes, offsets: Offsets) -> Offsets:
    """How many code points begin before each offset, which ascend."""
    out = np.empty(len(offsets), np.int64)
    before = done = 0
    for begin in range(0, len(data) + 1, BLOCK):
        block = data[begin : begin + BLOCK]
        here = int(np.searchsorted(offsets, begin + BLOCK))
        leads = (block & 0xC0) != 0x80
        if here > done:
            counts = np.concatenate([[0], np.cumsum(leads)])
            out[done:here] = before + counts[offsets[done:here] - begin]
        before += int(np.count_nonzero(leads))
        done = here
    return out


def at_borders(data: Bytes, offsets: Offsets) -> NDArray[np.bool_]:
    """Which offsets lie between code points."""
    inside = offsets < len(data)
    borders = ~inside
    borders[inside] = (data[offsets[inside]] & 0xC0) != 0x80
    return borders


@dataclass(frozen=True)
class Folded:
    """A text after case folding. Of every character that became several, or longer or shorter in UTF-8: where it begins
    and ends, in the folded text and in the original."""

    data: Bytes
    begin: Offsets
    end: Offsets
    own_begin: Offsets
    own_end: Offsets

    def original(self, offsets: Offsets) -> tuple[Offsets, NDArray[np.bool_]]:
        """Offsets in the original – within such a character, that of its begin –, and which of them lie in none."""
        if not len(self.begin):
            return offsets, np.ones(len(offsets), bool)
        passed = np.searchsorted(self.end, offsets, "right")  # characters that end at or before an offset
        shift = np.concatenate([[0], self.own_end - self.end])[passed]
        near = np.minimum(passed, len(self.begin) - 1)
        within = (passed < len(self.begin)) & (self.begin[near] < offsets)
        return np.where(within, self.own_begin[near], offsets + shift), ~within


def fold_key(key: bytes) -> bytes:
    """The key after full case folding, as `str.casefold` has it; bytes that are no UTF-8 stay."""
    if key.isascii():
        return key.lower()
    return key.decode("utf-8", "surrogateescape").casefold().encode("utf-8", "surrogateescape")


def fold_text(data: bytes) -> Folded:
    """The same for a text, character by character."""
    none = np.empty(0, np.int64)
    if data.isascii():
        return Folded(np.frombuffer(data.lower(), np.uint8), none, none, none, none)
    text = data.decode("utf-8", "surrogateescape")
    parts: list[bytes] = []
    places: list[tuple[int, int, int, int]] = []
    done = at = own = 0
    for match in _changing().finditer(text):
        same = text[done : match.start()].casefold().encode("utf-8", "surrogateescape")
        character = match.group()
        new, old = character.casefold().encode(), character.encode()
        at, own, done = at + len(same), own + len(same), match.end()
        parts += same, new
        places.append((at, at + len(new), own, own + len(old)))
        at, own = at + len(new), own + len(old)
    parts.append(text[done:].casefold().encode("utf-8", "surrogateescape"))
    columns = np.array(places, np.int64).reshape(-1, 4).T
    return Folded(np.frombuffer(b"".join(parts), np.uint8), *columns)


@lru_cache(maxsize=1)
def _changing() -> re.Pattern[str]:
    """Any character whose folding is several, or has a UTF-8 of another length."""
    found = []
    for code in itertools.chain(*ASSIGNED):
        character = chr(code)
        if 0xD800 <= code < 0xE000 or (folded := character.casefold()) == character:
            continue
        if len(folded) > 1 or len(folded.encode()) != len(character.encode()):
            found.append(character)
    return re.compile("[" + "".join(found) + "]")


def border_before(data: bytes, at: int) -> int:
    """The last place up to `at` where no character goes across, as far as one can tell from the bytes before."""
    for back in range(min(4, at + 1)):
        if at - back == len(data) or data[at - back] & 0xC0 != 0x80:
            return at - back
    return at


def cut_off(data: bytes) -> int:
    """Bytes at the end that may be the beginning of a character."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < size else 0
        if byte < 0x80:
            break
    return 0


@lru_cache(maxsize=1)
def letters() -> Any:
    """A bit for every code point, for C: set for those that words consist of – letters and digits as `str.isalnum` has
    them, the underscore, and the marks that are written over, under and around them."""
    bits = np.zeros(0x110000, bool)
    for part in ASSIGNED:
        characters = "".join(map(chr, part))
        for run in re.finditer(r"\w+", characters):
            bits[part[run.start()] : part[run.end() - 1] + 1] = True
        for other in re.finditer(r"\W", characters):
            if unicodedata.category(other.group())[0] == "M":
                bits[part[other.start()]] = True
    return ffi.from_buffer("uint8_t[]", np.packbits(bits, bitorder="little"))
