"""Part of tools/torture: large sets and long leaves, each checked to be a bijection that all instruction sets agree
on, and found under the first seed."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

from mphfstore import MPHF
from mphfstore._native import lib
from mphfstore._options import PRESETS

SETS = [name for name in ("avx512", "avx2", "neon", "baseline") if lib.mphf_isa_available(name.encode())]


def check(n: int, sets: list[str], **how: Any) -> None:
    """One function of n keys on each of these instruction sets, under the first seed: none has to be tried again."""
    keys = np.random.default_rng(n).integers(0, 1 << 63, n, np.uint64)
    files, seconds, name = set(), [], ", ".join(f"{option} {value}" for option, value in how.items())
    for isa in sets:
        os.environ["MPHFSTORE_ISA"] = isa
        begin = time.perf_counter()
        function = MPHF.build(keys, seed=1, **how)
        seconds.append(f"{isa} {time.perf_counter() - begin:.1f} s")
        files.add(function.to_bytes())
        seed = function.info()["seed"]
        if not np.array_equal(np.sort(function.index_many(keys)), np.arange(n)) or len(files) != 1 or seed != 1:
            sys.exit(f"FAILED: {n} keys, {name}, {isa}, {len(files)} files, seed {seed}")
    print(f"{n} keys, {name}: {function.bits_per_key:.3f} bits per key; {', '.join(seconds)}", flush=True)


for preset in PRESETS:
    check(10_000_000, SETS[:2], preset=preset)
check(1_000_000, SETS, preset="compact")
for method in ("rotation", "brute"):
    check(10_000_000, SETS[:2], method=method, leaf_size=8, bucket_size=100)
    for longest in range(14, 18):
        check(20 * longest, SETS, method=method, leaf_size=longest, bucket_size=2000)
check(100, SETS[:1], method="rotation", leaf_size=20, bucket_size=2000)
