"""Overlays of one directory in several processes: readers during compactions, writers in turn, forks, a growing map."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import python, start_python

import mphfstore as ms

KEYS = 500

# Every transaction gives all keys the same number: a view that has two of them is torn.
READER = """
import sys, mphfstore as ms
overlay = ms.Overlay(sys.argv[1], sys.argv[2], readonly=True)
print("ready", flush=True)
import select
keys, last, views, generations = [f"k{i}" for i in range(500)], 0, 0, set()
while not select.select([sys.stdin], [], [], 0)[0]:
    overlay.refresh()
    snapshot = overlay.snapshot()
    for mapping in (overlay, snapshot):
        found = {int(mapping[key]) for key in keys}
        assert len(found) == 1, found
        assert len(mapping) == 500
    assert dict(snapshot.items()) == {key: b"%d" % min(found) for key in keys}
    assert min(found) >= last
    last, views = min(found), views + 1
    generations.add(overlay.info()["base_identity"])
print(views, last, len(generations))
"""

WRITER = """
import sys, mphfstore as ms
overlay = ms.Overlay(sys.argv[1], sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for i in range(60):
    overlay[f"{sys.argv[3]}{i}"] = b"%d" % i
    if i % 20 == 10:
        overlay.compact()
    overlay["shared"] = sys.argv[3].encode()
    assert overlay[f"{sys.argv[3]}{i}"] == b"%d" % i
"""


def paths(folder: Path) -> tuple[Path, Path]:
    return folder / "base", folder / "overlay"


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate("\n", timeout=60)
    assert process.returncode == 0, err
    return out


def test_readers_see_one_state_while_others_write_and_compact(tmp_path: Path) -> None:
    overlay = ms.Overlay(*paths(tmp_path), durable=False)
    overlay.update({f"k{i}": b"0" for i in range(KEYS)})
    readers = [start_python(READER, *paths(tmp_path)) for _ in range(3)]
    for number in range(1, 40):
        overlay.update({f"k{i}": b"%d" % number for i in range(KEYS)})
        if number % 2:
            overlay.compact()
    for reader in readers:
        views, last, generations = map(int, ended(reader).split())
        assert views > 3 and last > 0 and generations > 1


def test_writers_of_several_processes_take_turns(tmp_path: Path) -> None:
    writers = [start_python(WRITER, *paths(tmp_path), name) for name in "abc"]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        ended(writer)
    with ms.Overlay(*paths(tmp_path)) as overlay:
        assert overlay.pop("shared") in (b"a", b"b", b"c")
        assert dict(overlay) == {f"{name}{i}": b"%d" % i for name in "abc" for i in range(60)}


def in_child(work: object) -> None:
    child = os.fork()
    if child == 0:
        try:
            work()  # type: ignore[operator]
            gc.collect()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_forked_child_reads_and_writes_and_disturbs_nobody(tmp_path: Path) -> None:
    overlay = ms.Overlay(*paths(tmp_path), durable=False)
    overlay.update({"a": b"1", "b": b"1"})
    overlay.compact()
    overlay["a"] = b"2"
    snapshot = overlay.snapshot()

    def child() -> None:
        assert overlay["a"] == b"2" and overlay["b"] == b"1" and len(overlay) == 2
        overlay["child"] = b"1"
        assert dict(overlay.snapshot()) == {"a": b"2", "b": b"1", "child": b"1"}
        with pytest.raises(RuntimeError, match="forked child"):
            snapshot["a"]
        overlay.close()

    in_child(child)
    for number in range(20):  # pages that the parent's snapshot can see must not be taken
        overlay["a"] = b"%d" % number * 1000
    assert dict(snapshot) == {"a": b"2", "b": b"1"} and overlay["child"] == b"1"
    in_child(lambda: overlay.compact())
    assert overlay["a"] == b"19" * 1000
    overlay.refresh()
    assert overlay.info()["entries"] == 0 and dict(overlay) == dict(ms.open(tmp_path / "base").items())


def test_a_batch_is_not_written_by_a_forked_child(tmp_path: Path) -> None:
    overlay = ms.Overlay(*paths(tmp_path))

    def child() -> None:
        with pytest.raises(RuntimeError, match="forked child"):
            batch.__exit__(None, None, None)

    batch = overlay.batch()
    with batch:
        overlay["a"] = b"1"
        in_child(child)
        assert not in_base(tmp_path, "a")
    assert overlay["a"] == b"1"


def in_base(folder: Path, key: str) -> bool:
    with ms.Overlay(*paths(folder), readonly=True) as reader:
        return key in reader


def test_a_map_that_another_process_has_grown(tmp_path: Path) -> None:
    code = """
import sys, mphfstore as ms
ms.Overlay(sys.argv[1], sys.argv[2]).update({f"k{i}": bytes(10_000) for i in range(int(sys.argv[3]))})
"""
    overlay = ms.Overlay(*paths(tmp_path), map_size=1 << 17)
    overlay["a"] = b"1"
    snapshot = overlay.snapshot()
    done = python(code.replace("sys.argv[2])", "sys.argv[2], map_size=1 << 17)"), *paths(tmp_path), 200)
    assert done.returncode == 0, done.stderr
    overlay.refresh()
    assert len(overlay) == 201 and dict(snapshot) == {"a": b"1"}
    overlay["b"] = b"2"
    assert overlay["b"] == b"2" and len(overlay["k7"]) == 10_000


def test_without_the_native_module_all_is_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-k", "not Model"]
    done = subprocess.run(
        [*command, str(Path(__file__).with_name("test_overlay.py"))],
        env={**os.environ, "MPHFSTORE_FASTPATH": "0"}, capture_output=True, text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
