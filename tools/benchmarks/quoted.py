"""Minimal perfect hash functions that are not on PyPI: figures quoted, not measured here.

All come from this project's founding documents: measured on one core of an AVX2 machine of Zen 3's class, with the
programs that accompany the papers named as `source`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quoted:
    """`query_ns` is the range given, of which both ends are equal where there was one figure."""

    program: str
    parameters: str
    bits_per_key: float
    build_ns: float
    query_ns: tuple[float, float] | None
    source: str


_SIMD = "Bez, Kurpicz, Lehmann, Sanders: High Performance Construction of RecSplit Based MPHFs (ESA 2023)"
_CONSENSUS = "Lehmann, Sanders, Walzer, Ziegler: Combined Search and Encoding for Seeds (2025)"
_SHOCKHASH = "Lehmann, Sanders, Walzer: ShockHash, near optimal-space minimal perfect hashing (2024)"
_PTRHASH = "Groot Koerkamp: PtrHash, minimal perfect hashing at RAM throughput (SEA 2025)"
_PHAST = "Beling, Sanders: PHast, perfect hashing made fast (2025)"
_PHOBIC = "Hermann, Lehmann, Pibiri, Sanders, Walzer: PHOBIC, perfect hashing with optimized buckets (ESA 2024)"

QUOTED = (
    Quoted("SIMDRecSplit", "(8, 100)", 1.81, 266, (72, 72), _SIMD),
    Quoted("SIMDRecSplit", "(11, 7)", 2.39, 368, (37, 37), _SIMD),
    Quoted("SIMDRecSplit", "(14, 2000)", 1.588, 34_985, (102, 102), _SIMD),
    Quoted("Consensus-RecSplit", "", 1.585, 461, (106, 106), _CONSENSUS),
    Quoted("Consensus-RecSplit", "", 1.52, 1471, (172, 172), _CONSENSUS),
    Quoted("bipartite ShockHash-RS", "", 1.577, 9238, None, _SHOCKHASH),
    Quoted("PtrHash", "", 2.99, 150, (3, 17), _PTRHASH),
    Quoted("PHast+", "", 2.66, 101, None, _PHAST),
    Quoted("PHOBIC", "R-int, λ = 9", 2.29, 3775, (17, 17), _PHOBIC),
)
