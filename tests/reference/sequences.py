"""Elias–Fano sequences (§5)."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

from .bits import M64, after_ones, ceil_div, number, pack, require, to_bits, unpack, words

ESCAPE = 65535


def elias_fano_layout(c: int, last: int) -> tuple[int, list[int]]:
    """λ and the words of long samples, short samples, lower, upper."""
    low = max(1, last // c).bit_length() - 1
    shorts = ceil_div(ceil_div(c, 256), 4)
    return low, [ceil_div(c, 8192), shorts, ceil_div(c * low, 64) + 1, ceil_div(c + (last >> low), 64)]


def elias_fano_encode(values: Sequence[int]) -> bytes:
    """The words of a non-decreasing sequence of at least one number below 2^64."""
    require(len(values) > 0, "an Elias–Fano sequence has at least one number")
    ascending = all(a <= b for a, b in pairwise([0, *values, M64]))
    require(ascending, "an Elias–Fano sequence does not decrease and stays below 2^64")
    c, last = len(values), values[-1]
    low, (_, n_short, n_lower, n_upper) = elias_fano_layout(c, last)
    ones = [(v >> low) + i for i, v in enumerate(values)]
    shorts = [min(ESCAPE, ones[i] - ones[i - i % 8192]) for i in range(0, c, 256)]
    lower = "".join(to_bits(v, low) for v in values)
    upper = "".join("0" * (b - a - 1) + "1" for a, b in pairwise([-1, *ones]))
    short = struct.pack(f"<{len(shorts)}H", *shorts).ljust(8 * n_short, b"\0")
    return words([c, last, *ones[::8192]]) + short + pack(lower, 8 * n_lower) + pack(upper, 8 * n_upper)


class EliasFano:
    """Reader of the sequence at the start of `data`, of which `size` bytes are its own."""

    def __init__(self, data: bytes) -> None:
        require(len(data) >= 16, "Elias–Fano sequence cut off")
        self.c: int
        self.last: int
        self.c, self.last = struct.unpack_from("<QQ", data)
        require(self.c > 0, "Elias–Fano sequence without numbers")
        self.low, lengths = elias_fano_layout(self.c, self.last)
        ends = list(accumulate((8 * k for k in lengths), initial=16))
        self.size = ends[-1]
        require(self.size <= len(data), "Elias–Fano sequence cut off")
        self.data = data[: self.size]
        longs, shorts, lower, upper = (data[a:b] for a, b in pairwise(ends))
        self.longs = struct.unpack(f"<{len(longs) // 8}Q", longs)
        self.shorts = struct.unpack(f"<{len(shorts) // 2}H", shorts)
        self.lower, self.upper = unpack(lower), unpack(upper)

    def __len__(self) -> int:
        return self.c

    def _value(self, i: int, one: int) -> int:
        return (one - i << self.low) + number(self.lower, i * self.low, self.low)

    def __getitem__(self, i: int) -> int:
        if not 0 <= i < self.c:
            raise IndexError(i)
        k = i // 256
        while self.shorts[k] == ESCAPE and k % 32:
            k -= 1
        sample = self.longs[k // 32] + self.shorts[k]
        return self._value(i, after_ones(self.upper, sample, i - 256 * k + 1) - 1)

    def values(self) -> list[int]:
        """All numbers, by a scan of `upper` without samples."""
        ones = re.finditer("1", self.upper)
        return [self._value(i, one.start()) for i, one in enumerate(ones)]

    def check(self) -> None:
        """Raise ValueError unless `last`, samples and padding are those of the numbers."""
        require(self.upper.count("1") == self.c, "Elias–Fano: not c ones in upper")
        again = elias_fano_encode(self.values())
        require(again == self.data, "Elias–Fano: `last`, samples or padding disagree with the numbers")
