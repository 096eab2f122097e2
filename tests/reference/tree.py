"""The splitting tree and its probabilities (§3)."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from .bits import ceil_div, require


@cache
def lg(x: int) -> int:
    """log₂ x in 32.32, x ≥ 1."""
    e = x.bit_length() - 1
    y, fraction = x << 63 >> e, 0
    for _ in range(32):
        y = y * y >> 63
        bit = y >> 64
        y, fraction = y >> bit, fraction << 1 | bit
    return (e << 32) + fraction


LG_SUMS = [0]


def G(m: int) -> int:
    """m·lg(m) − Σ lg(i)."""
    while len(LG_SUMS) <= m:
        LG_SUMS.append(LG_SUMS[-1] + lg(len(LG_SUMS)))
    return m * lg(m) - LG_SUMS[m] if m else 0


class Tree:
    """Shape of the trees over leaves of at most `leaf` keys, with the fanouts of the lower levels; a method's class
    says how the levels above are split."""

    def __init__(self, leaf: int, fanouts: tuple[int, ...], longest_leaf: int, widest: int) -> None:
        require(2 <= leaf <= longest_leaf, f"leaf size {leaf} is not in 2 … {longest_leaf}")
        for level, fanout in enumerate(fanouts, 1):
            require(2 <= fanout <= widest, f"fanout {level}, {fanout}, is not in 2 … {widest}")
        self.leaf, self.fanouts = leaf, fanouts
        self.units = [leaf]  # ℓ, u₁, u₂, …
        for fanout in fanouts:
            self.units.append(self.units[-1] * fanout)
        self._nodes = {0: 0, 1: 0}

    def above(self, m: int) -> tuple[int, int]:
        """(fanout, unit) where m exceeds all units."""
        raise NotImplementedError

    def shape(self, m: int) -> tuple[int, int] | None:
        """(fanout, unit) of a splitting of m keys; None for a leaf and for m ≤ 1."""
        if m <= self.leaf:
            return None
        for unit, limit in pairwise(self.units):
            if m <= limit:
                return ceil_div(m, unit), unit
        return self.above(m)

    def parts(self, m: int) -> list[int]:
        """Keys in each part of a splitting of m keys; empty for a leaf and for m ≤ 1."""
        fanout, unit = self.shape(m) or (0, 0)
        return [unit] * (fanout - 1) + [m - unit * (fanout - 1)] if fanout else []

    def nodes(self, m: int) -> int:
        """Numbers in the tree of m keys."""
        if m not in self._nodes:
            self._nodes[m] = 1 + sum(map(self.nodes, self.parts(m)))
        return self._nodes[m]

    def log2_inverse_p(self, m: int) -> int:
        """L(m) in 32.32, m ≥ 2."""
        return max(0, G(m) - sum(map(G, self.parts(m))))
