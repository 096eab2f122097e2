"""`brute` and `rotation`: numbers in Golomb–Rice code (§4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import isqrt

from .bits import GOLDEN, M32, M64, after_ones, ceil_div, number, require, to_bits
from .tree import Tree

ROOTS = [2**63]  # r_j of §3
for _ in range(32):
    ROOTS.append(isqrt(ROOTS[-1] << 64))


class Params(Tree):
    """Method, "brute" or "rotation", and tree shape; fanouts default to the specification's."""

    def __init__(self, method: str, leaf: int, fanout1: int | None = None, fanout2: int | None = None) -> None:
        require(method in ("brute", "rotation"), f"unknown method {method!r}")
        self.method = method
        default1, default2 = max(2, ceil_div(35 * leaf + 50, 100)), 2 if leaf < 7 else ceil_div(21 * leaf + 90, 100)
        fanouts = default1 if fanout1 is None else fanout1, default2 if fanout2 is None else fanout2
        super().__init__(leaf, fanouts, longest_leaf=24, widest=9)
        require(fanouts[0] * leaf <= 254, "fanout1 · leaf exceeds 254")
        self._taus: dict[int, int] = {}
        self._fixed: dict[int, int] = {0: 0, 1: 0}

    def above(self, m: int) -> tuple[int, int]:
        u2 = self.units[2]
        return 2, u2 * ((m + u2) // (2 * u2))

    def fixed_bits(self, m: int) -> int:
        """Bits of the fixed parts of all numbers in the tree of m keys."""
        if m not in self._fixed:
            self._fixed[m] = self.tau(m) + sum(map(self.fixed_bits, self.parts(m)))
        return self._fixed[m]

    def p(self, m: int) -> int:
        """Probability in 0.64 that a number fits a node of m ≥ 2 keys."""
        whole, fraction = divmod(self.log2_inverse_p(m), 1 << 32)
        require(whole <= 48, f"a number that fits a node of {m} keys is too improbable")
        p = M64
        for j in range(1, 33):
            if fraction >> 32 - j & 1:
                p = p * ROOTS[j] >> 64
        return p >> whole

    def tau(self, m: int) -> int:
        """Bits of the fixed part of the number of a node of m ≥ 2 keys."""
        if m not in self._taus:
            q, t = 2**64 - self.p(m), 0
            while q > GOLDEN:
                q, t = q * q >> 64, t + 1
            self._taus[m] = t
        return self._taus[m]


def node_hash(lo: int, depth: int, x: int, m: int) -> int:
    """q, in 0 … m − 1."""
    y = lo + (depth + 1) * GOLDEN + x & M64
    v = (y ^ y >> 32) & M32
    v = (v ^ v >> 16) * 0x85EBCA6B & M32
    v = (v ^ v >> 13) * 0xC2B2AE35 & M32
    v ^= v >> 16
    return (v >> 16) * m >> 16


def part_of_position(parts: list[int]) -> list[int]:
    """q div unit of §3 for every q, but no more than the last part: that of a halving may exceed its unit."""
    return [i for i, size in enumerate(parts) for _ in range(size)]


def search_parts(los: list[int], depth: int, parts: list[int]) -> int:
    """The smallest x that sends parts[i] keys to part i; a leaf has m parts of one key.

    The hash is node_hash's, inlined: what exceeds 64 bits of y falls to the first mask, and v's last step
    leaves its upper half as it is.
    """
    m = len(los)
    part_of = part_of_position(parts)
    starts = [lo + (depth + 1) * GOLDEN & M64 for lo in los]
    for x in count():
        room = parts.copy()
        for y in starts:
            y += x
            v = (y ^ y >> 32) & M32
            v = (v ^ v >> 16) * 0x85EBCA6B & M32
            part = part_of[((v ^ v >> 13) * 0xC2B2AE35 >> 16 & 0xFFFF) * m >> 16]
            if not room[part]:
                break
            room[part] -= 1
        else:
            return x
    raise AssertionError


def search_rotation(los: list[int], depth: int) -> int:
    """The smallest x = ℓ·t + r of a leaf of exactly ℓ keys under `rotation`."""
    leaf = len(los)
    for base in count(0, leaf):
        seen = [0, 0]  # positions of the keys with even and with odd lo
        for lo in los:
            position = 1 << node_hash(lo, depth, base, leaf)
            if seen[lo & 1] & position:
                break
            seen[lo & 1] |= position
        else:
            even, odd = seen
            for r in range(leaf):
                if not even & (odd << r | odd >> leaf - r):
                    return base + r
    raise AssertionError


def search_tree(params: Params, los: list[int], depth: int = 0) -> Iterator[tuple[int, int]]:
    """(m, x) of the nodes of at least 2 keys, in preorder."""
    m = len(los)
    parts = params.parts(m)
    if m > 1 and not parts:
        rotate = params.method == "rotation" and m == params.leaf
        yield m, search_rotation(los, depth) if rotate else search_parts(los, depth, [1] * m)
    elif parts:
        x = search_parts(los, depth, parts)
        yield m, x
        part_of = part_of_position(parts)
        groups: list[list[int]] = [[] for _ in parts]
        for lo in los:
            groups[part_of[node_hash(lo, depth, x, m)]].append(lo)
        for group in groups:
            yield from search_tree(params, group, depth + 1)


def build_bucket(params: Params, los: list[int]) -> str:
    """The bit string of a bucket of keys with distinct `lo`."""
    found = [(x, params.tau(m)) for m, x in search_tree(params, los)]
    fixed = (to_bits(x, tau) for x, tau in found)
    unary = ("0" * (x >> tau) + "1" for x, tau in found)
    return "".join([*fixed, *unary])


def bucket_end(params: Params, m: int, bits: str, at: int) -> int:
    """The bit after the bit string of a bucket of m keys that starts at bits[at]."""
    return after_ones(bits, at + params.fixed_bits(m), params.nodes(m))


def locate(params: Params, lo: int, m: int, bits: str, at: int) -> int:
    """Position of a key in a bucket of m ≥ 1 keys whose bit string starts at bits[at]."""
    fixed, unary = at, at + params.fixed_bits(m)
    position = depth = 0
    while m > 1:
        tau = params.tau(m)
        one = bits.index("1", unary)
        x = (one - unary << tau) + number(bits, fixed, tau)
        fixed, unary = fixed + tau, one + 1
        parts = params.parts(m)
        if not parts:
            if params.method == "rotation" and m == params.leaf:
                q = node_hash(lo, depth, x - x % m, m)
                return position + ((q + x) % m if lo & 1 else q)
            return position + node_hash(lo, depth, x, m)
        part = min(node_hash(lo, depth, x, m) // parts[0], len(parts) - 1)
        position += parts[0] * part
        fixed += params.fixed_bits(parts[0]) * part
        unary = after_ones(bits, unary, params.nodes(parts[0]) * part)
        m, depth = parts[part], depth + 1
    return position
