"""kill -9 at many points of a compaction, and of any other writing: every write that had returned is there, and no
half state. Killed are forked children, so that a hundred deaths take seconds."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mphfstore as ms
from mphfstore import _overlay_compact, _overlay_state

OLD = {f"k{i}": b"old" for i in range(60)}
NEW = {f"k{i}": b"new" for i in range(30, 90)}
EXPECTED = OLD | NEW | {"k0": b"new"}
for gone in ("k1", "k30", "k59"):
    del EXPECTED[gone]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base and an overlay over it that have EXPECTED, copied for every death."""
    folder = tmp_path_factory.mktemp("template")
    with open_in(folder) as overlay:
        overlay.update(OLD)
        overlay.compact()
        overlay.update(NEW)
        overlay["k0"] = b"new"
        overlay.delete_many(["k1", "k30", "k59"])
    return folder


def open_in(folder: Path, **options: Any) -> ms.Overlay:
    return ms.Overlay(folder / "base", folder / "overlay", **options)


def killed_in_child(work: Callable[[], None]) -> bool:
    """Whether a forked child died of SIGKILL; False: it came to its end. Fails if it raised."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def die_at_call(number: int) -> Callable[[Any, str, Any], None]:
    """A profiler that kills the process when a function, of Python or C, is called or returns for the n-th time."""
    left = number

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return profile


def check(folder: Path, expected: dict[str, bytes]) -> None:
    """A reader sees all of it before anybody clears up; then a writer clears up and folds the rest."""
    with open_in(folder, readonly=True) as reader:
        assert dict(reader) == expected and len(reader) == len(expected)
        assert all(reader[key] == value for key, value in expected.items())
    with open_in(folder) as overlay:
        assert dict(overlay) == expected
        assert not overlay.info()["compaction_pending"]
        overlay["after"] = b""
        assert overlay.compact(seed=1) and overlay.info()["entries"] == 0
        assert dict(overlay) == expected | {"after": b""}
    assert sorted(os.listdir(folder)) == ["base", "overlay"]  # no debris
    ms.open(folder / "base").verify()


def compaction_that_dies(folder: Path, number: int) -> Callable[[], None]:
    def work() -> None:
        overlay = open_in(folder)
        sys.setprofile(die_at_call(number))
        overlay.compact(seed=1, threads=1)
        sys.setprofile(None)

    return work


def test_killed_at_any_call_of_a_compaction(template: Path, tmp_path: Path, random_seed: int) -> None:
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += 1

    shutil.copytree(template, tmp_path / "whole")
    with open_in(tmp_path / "whole") as overlay:
        sys.setprofile(profile)
        overlay.compact(seed=1, threads=1)
        sys.setprofile(None)
    generator = random.Random(random_seed)
    step, deaths, begin = count // 120, 0, time.monotonic()
    for number in range(1 + generator.randrange(step), count, step):
        folder = tmp_path / str(number)
        shutil.copytree(template, folder)
        deaths += killed_in_child(compaction_that_dies(folder, number))
        check(folder, EXPECTED)
        shutil.rmtree(folder)
        if time.monotonic() - begin > 20:
            break
    assert deaths > 20


@pytest.mark.parametrize("owner, name, before", [
    (os, "replace", True), (os, "replace", False), (os, "fsync", True), (os, "fsync", False),
    (_overlay_state, "drop_folded", True), (_overlay_state, "drop_folded", False),
    (_overlay_compact, "settle", True), (_overlay_compact, "settle", False),
    (ms._environment.Environment, "write", True), (ms._environment.Environment, "write", False),
    (ms._environment.Environment, "flush", True), (ms._environment.Environment, "flush", False),
])  # fmt: skip
def test_killed_before_and_after_every_step(
    owner: Any, name: str, before: bool, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first call of a step, at the second and so on, until there are no more; the state is dropped in pieces."""
    monkeypatch.setattr(_overlay_state, "DROPPED_AT_ONCE", 20)
    original = getattr(owner, name)
    for number in range(1, 40):
        folder = tmp_path / str(number)
        shutil.copytree(template, folder)
        calls = 0

        def dying(*arguments: Any, number: int = number, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if before and calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*arguments, **options)
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        def work(folder: Path = folder) -> None:
            overlay = open_in(folder)
            for module in (owner, _overlay_compact):
                if getattr(module, name, None) is original:
                    monkeypatch.setattr(module, name, dying)
            overlay.compact(seed=1)

        died = killed_in_child(work)
        check(folder, EXPECTED)
        if not died:
            assert number > 1
            return
    raise AssertionError("no end")


def write_and_report(folder: Path, pipe: int) -> None:
    """Writes numbers in turn, and reports each that has returned; compacts on the way."""
    overlay = open_in(folder)
    number = len(overlay)
    while True:
        number += 1
        if number % 7 == 0:
            overlay.update({f"{number}{part}": b"%d" % number for part in "abc"})
        else:
            overlay[str(number)] = b"%d" % number
        os.write(pipe, b"%d\n" % number)
        if number % 10 == 0:
            overlay.compact()


def test_killed_at_any_time_it_has_every_write_that_returned(tmp_path: Path, random_seed: int) -> None:
    generator = random.Random(random_seed)
    acknowledged: set[int] = set()
    for _ in range(40):
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                write_and_report(tmp_path, writable)
            finally:
                os._exit(1)
        os.close(writable)
        with os.fdopen(readable, "rb") as pipe:
            acknowledged.add(int(pipe.readline()))
            time.sleep(generator.uniform(0, 0.08))
            os.kill(child, signal.SIGKILL)
            acknowledged |= {int(line) for line in pipe if line.endswith(b"\n")}
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        with open_in(tmp_path, readonly=True) as reader:
            found = dict(reader)
        for number in acknowledged:
            names = [f"{number}{part}" for part in "abc"] if number % 7 == 0 else [str(number)]
            assert all(found.pop(name) == b"%d" % number for name in names)
        rest = {int(name.rstrip("abc")) for name in found}  # what was written and not reported
        assert len(found) == sum(3 if number % 7 == 0 else 1 for number in rest)
        acknowledged |= rest
    assert len(acknowledged) > 100
