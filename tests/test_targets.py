"""Publication where the machine does not play along: every system call fails once, odd names and directories, two
builders at once."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import names_in, python, start_python

import mphfstore as ms

RECORDS = {f"k{i}": b"%d" % i * (i % 3) for i in range(500)}


def build(target: Path) -> None:
    ms.build(target, RECORDS, seed=1)


def save(target: Path) -> None:
    ms.Filter.build(RECORDS, seed=1).save(target)


WRITERS = {"build": build, "save": save}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "s").write_bytes(b"old")
    return tmp_path / "s"


def failing(monkeypatch: pytest.MonkeyPatch, name: str, number: int, error: BaseException) -> list[str]:
    """Makes call `number` of a function of `os` fail. Returns the list that the calls are noted in."""
    genuine, calls = getattr(os, name), []

    def call(*arguments: Any, **options: Any) -> Any:
        calls.append(name)
        if len(calls) == number + 1:
            raise error
        return genuine(*arguments, **options)

    monkeypatch.setattr(os, name, call)
    return calls


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left"), OSError(errno.EIO, "I/O error"), KeyboardInterrupt(), MemoryError()],
    ids=repr,
)
@pytest.mark.parametrize("name", ["pwrite", "replace"])
def test_every_system_call_may_fail_once(
    target: Path, monkeypatch: pytest.MonkeyPatch, writer: str, error: BaseException, name: str
) -> None:
    for number in itertools.count():
        with monkeypatch.context() as patch:
            calls = failing(patch, name, number, error)
            try:
                WRITERS[writer](target)
            except type(error):
                assert len(calls) == number + 1, f"{name} was called again after a failure"
            else:
                break
        assert target.read_bytes() == b"old", f"after a failure of {name} number {number}"
        assert names_in(target.parent) == ["s"], f"after a failure of {name} number {number}"
    assert number >= 1
    ms.open(target).verify()


@pytest.mark.parametrize("writer", WRITERS)
def test_an_fsync_that_fails_is_an_error(target: Path, monkeypatch: pytest.MonkeyPatch, writer: str) -> None:
    failing(monkeypatch, "fsync", 0, OSError(errno.EIO, "I/O error"))
    with pytest.raises(OSError, match="I/O error"):
        WRITERS[writer](target)
    assert target.read_bytes() == b"old" and names_in(target.parent) == ["s"]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("most", [1, 7, 100])
def test_short_writes_are_continued(target: Path, monkeypatch: pytest.MonkeyPatch, writer: str, most: int) -> None:
    WRITERS[writer](target)
    expected, genuine = target.read_bytes(), os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: genuine(fd, data[:most], offset))
    WRITERS[writer](target)
    assert target.read_bytes() == expected


LIMITS = """
import errno, os, resource, sys, mphfstore as ms
path, size = sys.argv[1], int(sys.argv[2])
records = {f"k{i}": b"%d" % i * (i % 3) for i in range(500)}
for limit in sorted({0, 1, 100, size - 1, *range(0, size, 997)}):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        ms.build(path, records, seed=1)
    except OSError as error:
        assert error.errno == errno.EFBIG, error
    else:
        sys.exit(f"built within {limit} bytes")
    assert os.listdir(os.path.dirname(path)) == ["s"], limit
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
assert open(path, "rb").read() == b"old"
ms.build(path, records, seed=1)
"""


def test_a_file_that_may_not_grow_fails_wherever_it_stops(
    target: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = tmp_path_factory.mktemp("whole") / "s"
    build(whole)
    done = python(LIMITS, target, whole.stat().st_size)
    assert (done.returncode, done.stderr) == (0, "")
    assert target.read_bytes() == whole.read_bytes()


def longest_names() -> Iterator[str]:
    for letter in "aé€😀":
        size = len(letter.encode())
        yield letter * (255 // size)
        yield "x" * (255 % size) + letter * (255 // size)


@pytest.mark.parametrize(
    "name",
    [*longest_names(), "s[1]*?.mph", "new\nline", "-", "...", " "],
    ids=lambda n: f"{n[:4]!a} to {len(n.encode())} bytes",
)
def test_any_name_of_a_file_names_a_target(tmp_path: Path, name: str) -> None:
    killed = "import sys, os, mphfstore as ms\nwith ms.Builder(sys.argv[1]): os.kill(os.getpid(), 9)"
    assert python(killed, tmp_path / name).returncode == -9
    assert len(names_in(tmp_path)) == 1
    build(tmp_path / name)
    assert names_in(tmp_path) == [name]


def test_a_build_removes_the_debris_of_its_own_target_only(tmp_path: Path) -> None:
    killed = "import sys, os, mphfstore as ms\nwith ms.Builder(sys.argv[1]): os.kill(os.getpid(), 9)"
    for name in ("s", "s.mph", ".s", "t", "xs"):
        assert python(killed, tmp_path / name).returncode == -9
    others = (".s.mphtmp", ".s.0123456789abcdeX.mphtmp", ".s.0123456789abcdef.mphtmp~", "s.0123456789abcdef.mphtmp")
    for name in others:
        (tmp_path / name).write_bytes(b"someone else's")
    build(tmp_path / "s")
    assert len(names_in(tmp_path)) == 1 + 4 + len(others)
    assert set(others) < set(names_in(tmp_path))


LIVING = """
import sys, mphfstore as ms
with ms.Builder(sys.argv[1]) as builder:
    builder.add("a", b"from the other process")
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_the_temporary_file_of_another_living_process_stays(target: Path) -> None:
    other = start_python(LIVING, target)
    for _ in range(3):
        build(target)
        assert len(names_in(target.parent)) == 2
    _, errors = other.communicate("go on\n", timeout=60)
    assert (other.returncode, errors) == (0, "")
    assert ms.open(target)["a"] == b"from the other process"
    assert names_in(target.parent) == ["s"]


def test_a_builder_survives_another_that_starts_before_it_has_its_lock(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine: Callable[[int, int], None] = fcntl.flock

    def flock(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", genuine)
        build(target)  # as another process could at this instant
        genuine(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with ms.Builder(target) as builder:
        builder.add("a", b"survivor")
    assert ms.open(target)["a"] == b"survivor"
    assert names_in(target.parent) == ["s"]


def test_a_builder_survives_another_that_is_about_to_remove_its_file(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine: Callable[[int, int], None] = fcntl.flock
    taken: list[tuple[int, Path]] = []

    def flock(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", genuine)
        (path,) = target.parent.glob(".*.mphtmp")
        taken.append((os.open(path, os.O_RDWR), path))
        genuine(taken[0][0], operation)  # the other one found it without a lock, and has it now
        genuine(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with ms.Builder(target) as builder:
        for fd, path in taken:
            path.unlink(missing_ok=True)
            os.close(fd)
        builder.add("a", b"survivor")
    assert len(taken) == 1
    assert ms.open(target)["a"] == b"survivor"
    assert names_in(target.parent) == ["s"]


def test_a_relative_target_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    for ends_well in (True, False):
        monkeypatch.chdir(here)
        try:
            with ms.Builder("s") as builder:
                builder.add("a", b"1")
                monkeypatch.chdir(there)
                assert ends_well
        except AssertionError:
            assert not ends_well
        assert names_in(there) == []
        assert names_in(here) == ["s"]


DIRECTORIES = """
import os, sys, mphfstore as ms
ms.build(sys.argv[1] + "/warm", {"a": b"1"})
ms.open(sys.argv[1] + "/warm")["a"]
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for mode, folder in ((0o555, "closed"), (0o333, "blind"), (0o777, "open")):
    try:
        ms.build(f"{sys.argv[1]}/{folder}/s", {"a": b"new"})
        print(folder, "built")
    except PermissionError:
        print(folder, "refused")
"""


def test_a_refusal_leaves_the_old_file_and_success_the_new_one(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):  # pytest's own are closed to others
        if folder.name.startswith(("pytest", "popen", "test")) and folder.owner() == tmp_path.owner():
            folder.chmod(0o755)
    folders = {"closed": 0o555, "blind": 0o333, "open": 0o777}
    for folder, mode in folders.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s").write_bytes(b"old")
        (tmp_path / folder).chmod(mode)
    done = python(DIRECTORIES, tmp_path)
    for folder in folders:
        (tmp_path / folder).chmod(0o755)
    assert done.returncode == 0, done.stderr
    outcomes = dict(line.split() for line in done.stdout.splitlines())
    assert (outcomes["closed"], outcomes["open"]) == ("refused", "built")
    for folder, outcome in outcomes.items():
        unchanged = (tmp_path / folder / "s").read_bytes() == b"old"
        assert unchanged == (outcome == "refused"), f"{folder}: {outcome}"
        assert names_in(tmp_path / folder) == ["s"]


def test_a_store_can_be_saved_over_its_own_file(tmp_path: Path) -> None:
    build(tmp_path / "s")
    store = ms.open(tmp_path / "s")
    expected = store.to_bytes()
    store.save(tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == expected == store.to_bytes()
    assert store.get_many(RECORDS) == list(RECORDS.values())


INTERRUPTED = """
import os, signal, sys, threading, mphfstore as ms
signal.signal(signal.SIGINT, signal.default_int_handler)
def progress(done, total):
    print("ready", flush=True)
ms.build(sys.argv[1], [b"%d" % i for i in range(5000)], values=None, method=sys.argv[2], leaf_size=22, bucket_size=2000,
         threads=2, progress=progress)
"""


@pytest.mark.parametrize("method", ["brute", "rotation"])
def test_ctrl_c_ends_a_build_of_hours_and_leaves_nothing(target: Path, method: str) -> None:
    process = start_python(INTERRUPTED, target, method)
    assert len(names_in(target.parent)) == 2
    process.send_signal(2)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    assert target.read_bytes() == b"old" and names_in(target.parent) == ["s"]
