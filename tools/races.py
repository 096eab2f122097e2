#!/usr/bin/env python3
"""Every kernel once, on few keys: what `tools/torture races` runs under Oclgrind, which reports data races and items
that part ways at a barrier. With --broken the program lacks a barrier, and a report is what is wanted."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable

import numpy as np

import mphfstore as ms
from mphfstore import _device, _device_chained, _device_levels

PRESETS = ("fast", "balanced", "smallest")
METHODS = ("chained", "brute", "rotation")
BARRIER = "        sort_by_class(&a, w);\n        BARRIER();\n"


def main() -> None:
    if "--broken" in sys.argv:
        whole = _device.kernel_text()
        assert BARRIER in whole
        _device.kernel_text = lambda: whole.replace(BARRIER, BARRIER.replace("BARRIER();", ""))
        chained([60], PRESETS[:1])
        return
    session = _device.sessions("opencl")[0]
    assert session.device.name.startswith("Oclgrind"), session.device.name
    names = {id(kernel): name for name, kernel in vars(session.kernels).items()}
    launch, launched = session.device.launch, set()

    def noting(kernel: object, *given: object) -> object:
        launched.add(names[id(kernel)])
        return launch(kernel, *given)

    session.device.launch = noting
    chained([500], PRESETS)
    session.device.gpu = True  # as a GPU has them: groups of 32, and some for one node
    _device_levels.TOGETHER_FROM = 100
    chained([200], PRESETS[:2])
    for method in METHODS[1:]:
        keys = np.arange(120)
        options = {"method": method, "leaf_size": 6, "bucket_size": 30, "seed": 1}
        agree(keys, **options)
    look_ups()
    scans()
    assert launched == set(vars(session.kernels)), set(vars(session.kernels)) - launched
    print("every kernel ran, and gave native code's results")


def chained(counts: Iterable[int], presets: Iterable[str]) -> None:
    for preset in presets:
        for count in counts:
            agree(np.arange(count), preset=preset, seed=1)
    _device_chained.VISITS_PER_NODE, kept = 1, _device_chained.VISITS_PER_NODE
    agree(np.arange(200), preset="fast", seed=1)  # buckets that are given up
    _device_chained.VISITS_PER_NODE = kept


def agree(keys: object, **options: object) -> None:
    built = [ms.Filter.build(keys, backend=backend, **options).to_bytes() for backend in ("opencl", "native")]
    assert built[0] == built[1], options


def look_ups() -> None:
    texts = [f"{i}" * (i % 5) + f"key {i}" for i in range(100)]
    asked = [*texts, "absent"]
    for method in METHODS:
        function = ms.Filter.build(texts, method=method, bucket_size=20, seed=1)
        there = function.to_device("opencl")
        assert np.array_equal(there.index_many(asked), function.index_many(asked))
        assert np.array_equal(there.contains_many(asked), function.contains_many(asked))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store")
        ms.build(path, (np.arange(100), np.arange(100) * 3), values="<i4", keys="exact", seed=1)
        there = ms.open(path).to_device("opencl")
        assert np.array_equal(there.get_many(np.arange(100)), np.arange(100) * 3)
        assert there.get_many(np.arange(101), -1)[100] == -1
    for method in METHODS:
        try:
            ms.MPHF.build([*texts, texts[0]], method=method, bucket_size=20, seed=1, backend="opencl")
        except ms.DuplicateKeyError:
            continue
        raise AssertionError(f"{method} took a key twice")


def scans() -> None:
    patterns = [b"a", b"ab", b"abab", b"b" * 20, b"abb" * 9]
    text = b"abab" * 20 + b"b" * 30 + b"abb" * 12
    dictionaries = [
        ms.Filter.build(patterns, method=method, seed=1, scan=True, fingerprint_bits=32) for method in METHODS
    ]
    for given in (b"abab", patterns, *dictionaries):
        for options in ({}, {"mode": "windows", "width": [2, 20]}):
            found, expected = (ms.scan(text, given, backend=backend, **options) for backend in ("opencl", "native"))
            assert (len(found) or options) and all(
                np.array_equal(getattr(found, name), getattr(expected, name)) for name in ("start", "length", "index")
            )


if __name__ == "__main__":
    main()
