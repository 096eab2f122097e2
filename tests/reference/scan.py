"""The prefilter of a dictionary (§8)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from .bits import M64, ceil_div, require, words

HEAD = struct.Struct("<4I")
LONG = 16
K1, K2, K3, K4 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0x9FB21C651E98DF25


def element(first: bytes, last: bytes, tag: int) -> int:
    x, y = int.from_bytes(first, "little"), int.from_bytes(last, "little")
    h = x * K1 + y * K2 + tag * K3 & M64
    return (h ^ h >> 32) * K4 & M64


def of_key(key: bytes) -> int:
    padded = key.ljust(8, b"\0")
    return element(padded[:8], padded[-8:], len(key))


def of_eight(first: bytes) -> int:
    return element(first, first, M64 - 8)


def of_sixteen(first: bytes) -> int:
    return element(first[:8], first[8:], M64 - 16)


def bits_of(e: int) -> int:
    return 1 << (e >> 8) % 64 | 1 << (e >> 14) % 64 | 1 << (e >> 20) % 64


class Prefilter:
    """heads, words: base-2 logarithms of how many there are."""

    def __init__(self, heads: int, words: int, short: bool, listed: Sequence[int]) -> None:
        require(2 <= heads <= 24 and 1 <= words <= 40, "sizes of the prefilter are out of bounds")
        require(list(listed) == sorted(set(listed)) and all(LONG <= n < 1 << 62 for n in listed), "wrong lengths")
        self.a, self.b, self.listed = heads, words, list(listed)
        self.starts = bytearray(65536) if short else None
        self.heads, self.words = [0] * (1 << heads), [0] * (1 << words)

    @classmethod
    def decode(cls, section: bytes) -> Prefilter:
        require(len(section) >= HEAD.size, "the prefilter is cut off")
        heads, logarithm, short, count = HEAD.unpack_from(section)
        require(short <= 1 and heads <= 24 and logarithm <= 40, "wrong head of the prefilter")
        size = HEAD.size + 8 * count + 65536 * short + (4 << heads) + (8 << logarithm)
        require(len(section) == size, "wrong length of the prefilter")
        self = cls(heads, logarithm, bool(short), struct.unpack_from(f"<{count}Q", section, HEAD.size))
        at = HEAD.size + 8 * count
        if short:
            self.starts, at = bytearray(section[at : at + 65536]), at + 65536
        self.heads = list(struct.unpack_from(f"<{1 << heads}I", section, at))
        self.words = list(struct.unpack_from(f"<{1 << logarithm}Q", section, at + (4 << heads)))
        return self

    def encode(self) -> bytes:
        head = HEAD.pack(self.a, self.b, self.starts is not None, len(self.listed)) + words(self.listed)
        return head + bytes(self.starts or b"") + struct.pack(f"<{1 << self.a}I", *self.heads) + words(self.words)

    def _head(self, first: bytes) -> tuple[int, int]:
        """Number of the head, and its bit that marks the first five bytes."""
        first = first[:5].ljust(5, b"\0")
        h = int.from_bytes(first[:4], "little") * 0x9E3779B1 % (1 << 32)
        mark = (h + first[4] * 0x85EBCA6B) * 0xC2B2AE35 % (1 << 32) >> 28
        return h >> 32 - self.a, 16 + mark

    def _enter(self, e: int) -> None:
        self.words[e >> 64 - self.b] |= bits_of(e)

    def _holds(self, e: int) -> bool:
        return self.words[e >> 64 - self.b] & bits_of(e) == bits_of(e)

    def add(self, key: bytes) -> None:
        self._enter(of_key(key))
        if len(key) < 4:
            require(self.starts is not None, "a short key, but no starts")
            assert self.starts is not None
            for second in [key[1]] if len(key) > 1 else range(256):
                self.starts[key[0] + 256 * second] |= 1 << len(key) - 1
            return
        head, mark = self._head(key)
        self.heads[head] |= 1 << min(len(key), LONG) - 1 | (len(key) > 4) << mark
        if len(key) > 8:
            self._enter(of_eight(key[:8]))
        if len(key) >= LONG:
            self._enter(of_sixteen(key[:16]))

    def admits(self, text: bytes, at: int) -> list[int]:
        """The lengths of what begins there and may be a key."""
        here = text[at : at + 16].ljust(16, b"\0")
        number, mark = self._head(here)
        head = self.heads[number]
        lengths = head & (0xFFFF if head >> mark & 1 else 0xF)
        if self.starts is not None:
            lengths |= self.starts[here[0] + 256 * here[1]]
        if not self._holds(of_eight(here[:8])):
            lengths &= 0xFF
        found = [n for n in range(1, LONG) if lengths >> n - 1 & 1]
        if lengths >> LONG - 1 & 1 and self._holds(of_sixteen(here)):
            found += self.listed
        return [n for n in found if at + n <= len(text) and self._holds(of_key(text[at : at + n]))]


def encode_prefilter(keys: Iterable[bytes]) -> bytes:
    """The section of some keys, as a builder makes it."""
    keys = [key for key in keys if key]
    heads = min(max((4 * len(keys) - 1).bit_length(), 8), 18) if keys else 8
    logarithm = max(1, (ceil_div(len(keys), 4) - 1).bit_length()) if keys else 1
    listed = sorted({len(key) for key in keys if len(key) >= LONG})
    prefilter = Prefilter(heads, logarithm, any(len(key) < 4 for key in keys), listed)
    for key in keys:
        prefilter.add(key)
    return prefilter.encode()
