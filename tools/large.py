"""Part of tools/torture: large sets and long leaves, each checked to be a bijection that all instruction sets agree
on."""

from __future__ import annotations

import os
import sys

import numpy as np

from mphfstore import MPHF
from mphfstore._native import lib

SETS = [name for name in ("avx512", "avx2", "neon", "baseline") if lib.mphf_isa_available(name.encode())]


def check(n: int, method: str, leaf: int, bucket: int, sets: list[str]) -> None:
    keys = np.random.default_rng(n).integers(0, 1 << 63, n, np.uint64)
    files = set()
    for name in sets:
        os.environ["MPHFSTORE_ISA"] = name
        function = MPHF.build(keys, method=method, leaf_size=leaf, bucket_size=bucket, seed=1)
        files.add(function.to_bytes())
        if not np.array_equal(np.sort(function.index_many(keys)), np.arange(n)) or len(files) != 1:
            sys.exit(f"FAILED: {n} keys, {method}, leaf {leaf}, bucket {bucket}, {name}")
    found = f"{function.bits_per_key:.3f} bits per key, {', '.join(sets)}"
    print(f"{n} keys, {method}, leaf {leaf}, bucket {bucket}: {found}", flush=True)


for searched in ("rotation", "brute"):
    check(10_000_000, searched, 8, 100, SETS[:2])
    for longest in range(14, 18):
        check(20 * longest, searched, longest, 2000, SETS)
check(100, "rotation", 20, 2000, SETS[:1])
