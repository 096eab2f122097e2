"""The command as a process: its streams, pipes and signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mphfstore._cli import main


@pytest.fixture
def store(tmp_path: Path) -> str:
    (tmp_path / "in.tsv").write_bytes(b"one\t1\ntwo\t2\ttwo\nlast\t5")
    assert main(["build", str(tmp_path / "s.mph"), str(tmp_path / "in.tsv")]) == 0
    return str(tmp_path / "s.mph")


def test_standard_input_and_a_real_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mphfstore"]
    built = subprocess.run([*command, "build", "s.mph", "-"], input=b"a\t1\nb\t2\n", cwd=tmp_path, capture_output=True)
    assert (built.returncode, built.stdout, built.stderr) == (0, b"", b"")
    got = subprocess.run([*command, "get", "s.mph", "-"], input=b"b\na\nz\n", cwd=tmp_path, capture_output=True)
    assert (got.returncode, got.stdout, got.stderr) == (1, b"2\n1\n", b"mphfstore: no key z\n")


def test_a_closed_pipe_ends_quietly(store: str) -> None:
    keys = b"one\n" * 200_000
    shell = f"{sys.executable} -m mphfstore get {store} - | head -n 1"
    done = subprocess.run(["bash", "-c", shell], input=keys, capture_output=True)
    assert (done.stdout, done.stderr) == (b"1\n", b"")


def run(shell: str, folder: Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    shell = shell.replace("mphfstore", f"{sys.executable} -m mphfstore")
    return subprocess.run(["bash", "-c", shell], cwd=folder, capture_output=True, **options)


def test_keys_and_answers_that_end_in_nul(store: str, tmp_path: Path) -> None:
    got = run("mphfstore get s.mph -0 - one", tmp_path, input=b"two\0last")
    assert (got.returncode, got.stdout) == (0, b"2\ttwo\x005\x001\0")
    got = run("mphfstore has s.mph -0 -", tmp_path, input=b"one\0on\ne\0")
    assert (got.returncode, got.stdout, got.stderr) == (1, b"one\0", b"")


@pytest.mark.parametrize(
    ("shell", "message"),
    [
        ("mphfstore get s.mph one > /dev/full", b"mphfstore: No space left on device\n"),
        ("mphfstore info s.mph > /dev/full", b"mphfstore: No space left on device\n"),
        ("mphfstore get s.mph one >&-", b"mphfstore: standard output is closed\n"),
        ("mphfstore build t.mph - <&-", b"mphfstore: standard input is closed\n"),
    ],
)  # fmt: skip
def test_streams_that_do_not_work(shell: str, message: bytes, store: str, tmp_path: Path) -> None:
    done = run(shell, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", message)


def test_an_answer_comes_as_soon_as_its_key(store: str) -> None:
    command = [sys.executable, "-m", "mphfstore", "get", store, "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for key, value in ((b"one\n", b"1\n"), (b"last\n", b"5\n")):
            process.stdin.write(key)
            process.stdin.flush()
            assert process.stdout.readline() == value
        process.stdin.close()
    assert process.returncode == 0


def test_interrupted_it_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mphfstore", "build", "s.mph", "-"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stderr
        process.stdin.write(b"a\tb\n")
        process.stdin.flush()
        while not list(tmp_path.glob(".*.mphtmp")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
