"""Cycles of garbage that lead to an open file: CPython before 3.12.7 crashes on memoryviews in them (gh-77894)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import python

import mphfstore as ms

CODE = """
import gc, sys, mphfstore as ms

def failure(store):
    try:
        store._current()._failed(-6)  # as a damaged file makes it do
    except ms.FormatError as error:
        kept = error  # in a frame that its traceback leads to

def absent(store):
    opened = store._current()
    try:
        store.get_many(["a", "?"])
    except KeyError as error:
        kept = error

def itself(store):
    opened = store._current()
    opened.itself = opened

def handle(store):
    cycle = [store]
    cycle.append(cycle)

def opening(store):
    data = store.to_bytes()
    for i in range(0, len(data), 7):
        try:
            ms.open(data[:i] + b"?" + data[i + 1:])
        except ms.Error as error:
            kept = error

for _ in range(5):
    globals()[sys.argv[2]](ms.open(sys.argv[1]))
    gc.collect()
assert sys.argv[1] not in open("/proc/self/maps").read()
"""


@pytest.mark.parametrize("cycle", ["failure", "absent", "itself", "handle", "opening"])
@pytest.mark.parametrize("fastpath", ["0", "1"])
@pytest.mark.parametrize("values", [["", "1"], [1.5, 2.5]], ids=["bytes", "floats"])
def test_a_cycle_of_garbage_is_freed(cycle: str, fastpath: str, values: list[object], tmp_path: Path) -> None:
    kind = "f8" if isinstance(values[0], float) else "bytes"
    items = {key: value.encode() if isinstance(value, str) else value for key, value in zip("ab", values, strict=True)}
    ms.build(tmp_path / "s", items, values=kind)
    environment = os.environ | {"MPHFSTORE_FASTPATH": fastpath, "PYTHONMALLOC": "debug"}
    done = python(CODE, tmp_path / "s", cycle, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
