"""The command `mphfstore overlay`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import mphfstore as ms
from mphfstore._cli import main


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]):  # type: ignore[no-untyped-def]
    """run(action, *arguments, stdin=b""): status, stdout, stderr."""

    def runs(action: str, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        status = main(["overlay", action, str(tmp_path / "base"), str(tmp_path / "lmdb"), *arguments])
        sys.stdout.flush()
        return status, *capfdbinary.readouterr()

    return runs


def test_put_get_delete_compact(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert run("put", "Oslo", "NO") == (0, b"", b"")
    assert run("put", "-", stdin=b"Lima\tPE\nPerth\tAU\tGB\n\t\n") == (0, b"", b"")
    assert run("get", "Oslo", "Perth", "") == (0, b"NO\nAU\tGB\n\n", b"")
    assert run("delete", "Lima", "Ys") == (1, b"", b"mphfstore: no key Ys\n")
    assert run("get", "Lima", "Ys") == (1, b"PE\n", b"mphfstore: no key Ys\n")
    assert run("get", "-", "--quiet", stdin=b"Lima\r\nYs\n") == (1, b"PE\n", b"")
    assert run("compact") == (0, b"", b"")
    assert run("delete", "-", stdin=b"Lima\n") == (0, b"", b"")
    assert run("get", "--json", "Lima", "Oslo", "--quiet") == (1, b'{"key": "Oslo", "value": "NO"}\n', b"")
    assert dict(ms.open(tmp_path / "base").items()) == {"Oslo": b"NO", "Lima": b"PE", "Perth": b"AU\tGB", "": b""}
    status, out, _ = run("info", "--json")
    said = json.loads(out)
    assert status == 0 and (said["entries"], said["base_keys"], said["values"]) == (1, 4, "bytes")
    assert b"entries              1\n" in run("info")[1]


def test_numbers_text_and_json(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert run("put", "7", "1.5", "--values", "f8", "--key-dtype", "u4")[0] == 0
    assert run("put", "-", stdin=b"8\t2\n9\tx\n") == (2, b"", b"mphfstore: <stdin>:2: 'x' is not a number\n")
    assert run("get", "7", "8") == (1, b"1.5\n", b"mphfstore: no key 8\n")
    assert run("put", "x", "1")[0] == 2
    with ms.Overlay(tmp_path / "b2", tmp_path / "l2", values="json") as overlay:
        overlay["a"] = None
    main(["overlay", "put", str(tmp_path / "b2"), str(tmp_path / "l2"), "b", '{"x": [1]}'])
    with ms.Overlay(tmp_path / "b2", tmp_path / "l2") as overlay:
        assert dict(overlay) == {"a": None, "b": {"x": [1]}}


def test_errors_are_one_line(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for action, *arguments in (("get", "a"), ("info",)):
        status, out, error = run(action, *arguments)
        assert (status, out) == (2, b"") and b"lmdb: " in error and error.count(b"\n") == 1
    assert not (tmp_path / "lmdb").exists()
    assert run("put", "a") == (2, b"", b"mphfstore: a value is missing\n")
    assert run("put", "-", "b") == (2, b"", b"mphfstore: - takes no value: its lines have them\n")
    ms.build(tmp_path / "base", {"a": b"1"})
    assert run("delete", "a")[0] == 2  # written over no file
