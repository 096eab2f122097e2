"""A file appears whole under its name or not at all, and nothing else stays."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mphfstore as ms

PAIRS = [(f"k{i}", b"%d" % i) for i in range(3000)]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "s.mph").write_bytes(b"old")
    return tmp_path / "s.mph"


def unchanged(target: Path) -> bool:
    return target.read_bytes() == b"old" and [path.name for path in target.parent.iterdir()] == ["s.mph"]


def run(code: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys, os, mphfstore as ms\n" + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)  # type: ignore[call-overload]


def test_a_clean_end_replaces_the_old_file(target: Path) -> None:
    ms.build(target, PAIRS)
    assert ms.open(target)["k7"] == b"7"
    assert [path.name for path in target.parent.iterdir()] == ["s.mph"]


def test_readers_of_the_old_file_keep_it(target: Path) -> None:
    ms.build(target, [("a", b"1")])
    old = ms.open(target)
    ms.build(target, [("a", b"2")])
    assert (old["a"], ms.open(target)["a"]) == (b"1", b"2")


def test_an_exception_in_the_block_discards(target: Path) -> None:
    with pytest.raises(ZeroDivisionError), ms.Builder(target) as builder:
        builder.add("a", b"1")
        raise ZeroDivisionError
    assert unchanged(target)


def test_bad_records_discard(target: Path) -> None:
    for pairs in ([*PAIRS, ("k0", b"")], [*PAIRS, (1, b"")], [*PAIRS, ("x", "text")]):
        with pytest.raises((ms.DuplicateKeyError, TypeError)):
            ms.build(target, pairs)
        assert unchanged(target)


def test_an_exception_in_the_progress_callback_discards(target: Path) -> None:
    def refuse(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ms.build(target, PAIRS, progress=refuse)
    assert unchanged(target)


def test_a_full_disk_discards(target: Path) -> None:
    code = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    ms.build(sys.argv[1], {f"k{i}": bytes(40) for i in range(3000)})
except OSError as error:
    sys.exit(7)
"""
    assert resource.RLIMIT_FSIZE is not None
    done = run(code, target)
    assert done.returncode == 7, done.stderr
    assert unchanged(target)


def test_directories_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ms.build(tmp_path / "no" / "s", PAIRS)
    with pytest.raises(IsADirectoryError):
        ms.build(tmp_path, PAIRS)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        ms.build(tmp_path / "file" / "s", PAIRS)


@pytest.mark.skipif(os.geteuid() == 0 and not hasattr(os, "setuid"), reason="needs another user")
def test_a_directory_without_permission(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and os.geteuid() == 0 and folder.name.startswith("pytest"):
            folder.chmod(0o755)
    code = """
if os.geteuid() == 0:
    os.setuid(65534)
try:
    ms.build(sys.argv[1], {"a": b"1"})
except PermissionError:
    sys.exit(7)
"""
    done = run(code, closed / "s")
    assert done.returncode == 7, done.stderr
    assert list(closed.iterdir()) == []


def test_the_umask_decides_who_may_read(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        ms.build(tmp_path / "s", PAIRS)
    finally:
        os.umask(old)
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o640


def test_a_killed_build_leaves_debris_that_the_next_one_removes(target: Path) -> None:
    code = """
with ms.Builder(sys.argv[1]) as builder:
    builder.add("a", b"1")
    os.kill(os.getpid(), 9)
"""
    assert run(code, target).returncode == -signal.SIGKILL
    assert target.read_bytes() == b"old"
    assert len(list(target.parent.iterdir())) == 2
    ms.build(target, PAIRS)
    assert [path.name for path in target.parent.iterdir()] == ["s.mph"]


def test_the_temporary_file_of_a_living_builder_stays(target: Path) -> None:
    with ms.Builder(target) as slow:
        slow.add("a", b"slow")
        ms.build(target, [("a", b"quick")])
        assert ms.open(target)["a"] == b"quick"
    assert ms.open(target)["a"] == b"slow"
    assert [path.name for path in target.parent.iterdir()] == ["s.mph"]


def test_an_interrupt_ends_a_long_build_and_leaves_nothing(target: Path) -> None:
    code = """
import threading, signal
def progress(done, total):
    if not done:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    slow = {"method": "brute", "leaf_size": 24, "bucket_size": 200}
    ms.build(sys.argv[1], {f"k{i}": b"" for i in range(2000)}, **slow, progress=progress)
except KeyboardInterrupt:
    sys.exit(7)
"""
    done = run(code, target)  # which gives up after a minute: the search alone would take days
    assert done.returncode == 7, done.stderr
    assert unchanged(target)
