"""How functions are built: methods, presets, and what is given explicitly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ._device import BACKENDS
from ._native import ffi, lib

Progress = Callable[[int, int], None]

METHODS = {"brute": lib.METHOD_BRUTE, "rotation": lib.METHOD_ROTATION, "chained": lib.METHOD_CHAINED}
DEFAULT_FANOUTS = (4, 4, 4)
DUPLICATE_POLICIES = ("error", "first", "last", "list")


@dataclass(frozen=True)
class Chain:
    """Parameters of chained seeds (FORMAT.md §4): fanouts above the leaves, room per number in 1/256 bit, bits of a
    bucket's root salt."""

    fanouts: tuple[int, int, int]
    leaf_room: int
    split_room: int
    root_bits: int


@dataclass(frozen=True)
class Preset:
    """Leaf and bucket size with `chained`, the default method, and with `brute` and `rotation`."""

    leaf_size: int
    bucket_size: int
    chain: Chain
    others: tuple[int, int]
    method: str = "chained"


# Found by tools/sweep.py; README shows what they measure.
PRESETS = {
    "quick": Preset(9, 100, Chain((4, 3, 4), 200, 256, 4), (6, 40)),
    "fast": Preset(14, 80, Chain((8, 4, 4), 150, 220, 4), (11, 7)),
    "balanced": Preset(12, 160, Chain((5, 3, 4), 150, 220, 4), (8, 100)),
    "compact": Preset(12, 700, Chain((5, 4, 4), 77, 128, 6), (12, 500)),
    "smallest": Preset(12, 2000, Chain((6, 4, 4), 31, 38, 8), (14, 2000)),
}


@dataclass(frozen=True)
class Options:
    """How to build. `threads` and `backend` change the time only, never a byte."""

    method: str
    leaf_size: int
    bucket_size: int
    chain: Chain  # of no account to other methods
    seed: int | None = None
    threads: int | None = None
    on_duplicate: str = "error"
    progress: Progress | None = None
    backend: str = "auto"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method is one of {', '.join(METHODS)}, not {self.method!r}")
        longest = lib.CHAIN_LONGEST_LEAF if self.method == "chained" else lib.MPHF_LONGEST_LEAF
        if not 2 <= self.leaf_size <= longest:
            raise ValueError(f"leaf_size is 2 to {longest} for method {self.method!r}, not {self.leaf_size}")
        if not 1 <= self.bucket_size <= 65_535:
            raise ValueError(f"bucket_size is 1 to 65535, not {self.bucket_size}")
        if self.seed is not None and not 0 <= self.seed < 1 << 64:
            raise ValueError("seed is an integer of 64 bits, not negative")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads is at least 1, not {self.threads}")
        if self.backend not in BACKENDS:
            raise ValueError(f"backend is one of {', '.join(BACKENDS)}, not {self.backend!r}")
        if self.on_duplicate not in DUPLICATE_POLICIES:
            raise ValueError(f"on_duplicate is one of {', '.join(DUPLICATE_POLICIES)}, not {self.on_duplicate!r}")

    @classmethod
    def of(
        cls,
        preset: str = "balanced",
        method: str | None = None,
        leaf_size: int | None = None,
        bucket_size: int | None = None,
        **rest: Any,
    ) -> Options:
        """A preset, less what is given explicitly."""
        if preset not in PRESETS:
            raise ValueError(f"preset is one of {', '.join(PRESETS)}, not {preset!r}")
        base = PRESETS[preset]
        method = method or base.method
        leaf, bucket = (base.leaf_size, base.bucket_size) if method == base.method else base.others
        chain = base.chain
        if leaf_size is not None and leaf_size != leaf:  # the preset's fanouts are for its own leaves
            leaf, chain = leaf_size, replace(chain, fanouts=DEFAULT_FANOUTS)
        return cls(method, leaf, bucket if bucket_size is None else bucket_size, chain, **rest)

    def parameters(self) -> Any:
        """The native structure."""
        p = ffi.new("mphf_parameters *")
        p.method, p.leaf = METHODS[self.method], self.leaf_size
        if self.method == "chained":
            p.fanout1, p.fanout2, p.fanout3 = self.chain.fanouts
            p.leaf_room, p.split_room, p.root_bits = self.chain.leaf_room, self.chain.split_room, self.chain.root_bits
        else:
            lib.mphf_default_fanouts(p)
        return p
