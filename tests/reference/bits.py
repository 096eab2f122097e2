"""Bit strings – `str` of '0' and '1', bit 0 first – and other small things that every module uses."""

from __future__ import annotations

import struct
from collections.abc import Sequence

MAX_BUCKET = 65536
GOLDEN = 0x9E3779B97F4A7C15
M32, M64 = 2**32 - 1, 2**64 - 1


def require(condition: bool, reason: str) -> None:
    """Raise ValueError(reason) unless `condition`."""
    if not condition:
        raise ValueError(reason)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def words(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def to_bits(x: int, k: int) -> str:
    """The lowest k bits of x."""
    return format(x & (1 << k) - 1, f"0{k}b")[::-1] if k else ""


def number(bits: str, at: int, k: int) -> int:
    """The number of k bits at bit `at`."""
    return int(bits[at : at + k][::-1], 2) if k else 0


def pack(bits: str, size: int) -> bytes:
    """`bits`, then zero bits, in `size` bytes."""
    return int(bits[::-1] or "0", 2).to_bytes(size, "little")


def unpack(data: bytes) -> str:
    return to_bits(int.from_bytes(data, "little"), 8 * len(data))


def after_ones(bits: str, at: int, ones: int) -> int:
    """The bit after the next `ones` one bits at or after bit `at`."""
    for _ in range(ones):
        at = bits.index("1", at) + 1
    return at
