"""The command scan: dictionaries, outputs, exit statuses."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest

import mphfstore as ms
from mphfstore import _cli_scan
from mphfstore._cli import main

TEXT = b"Oslo and New York\nOSLO, Lima\xff\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "other").write_bytes(b"nothing here")
    (tmp_path / "list").write_bytes(b"Oslo\r\n\nNew York\nLima\xff\n")
    ms.build("exact.mph", ["Oslo", "New York", b"Lima\xff"], values=None, keys="exact")
    ms.build("scan.mph", ["Oslo", "New York", b"Lima\xff"], values=None, fingerprint_bits=32, scan=True)
    ms.build("print.mph", ["Oslo", "New York", b"Lima\xff"], values=None, fingerprint_bits=32)
    return tmp_path


def out(capfdbinary: pytest.CaptureFixture[bytes]) -> bytes:
    captured = capfdbinary.readouterr()
    assert captured.err == b""
    return captured.out


@pytest.mark.parametrize("dictionary", ["list", "exact.mph", "scan.mph"])
def test_every_dictionary(folder: Path, capfdbinary: pytest.CaptureFixture[bytes], dictionary: str) -> None:
    assert main(["scan", dictionary, "text"]) == 0
    assert out(capfdbinary) == b"0:Oslo\n9:New York\n24:Lima\xff\n"
    assert main(["scan", dictionary, "text", "other"]) == 0
    assert out(capfdbinary) == b"text:0:Oslo\ntext:9:New York\ntext:24:Lima\xff\n"
    assert main(["scan", dictionary, "other"]) == 1
    assert out(capfdbinary) == b""
    assert main(["scan", dictionary, "-o", "text", "other"]) == 0
    assert out(capfdbinary) == b"text:Oslo\ntext:New York\ntext:Lima\xff\n"
    assert main(["scan", dictionary, "-o", "-0", "text"]) == 0
    assert out(capfdbinary) == b"Oslo\0New York\0Lima\xff\0"
    assert main(["scan", dictionary, "--count", "text"]) == 0
    assert out(capfdbinary) == b"3\n"
    assert main(["scan", dictionary, "-c", "text", "other"]) == 0
    assert out(capfdbinary) == b"text:3\nother:0\n"
    assert main(["scan", dictionary, "--quiet", "text"]) == 0
    assert main(["scan", dictionary, "--quiet", "other"]) == 1
    assert out(capfdbinary) == b""


def test_lines_of_any_length(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns = [b"ab", b"b" * 40, b"a"]
    text = b"ab" * 50 + b"b" * 90 + b"a"
    Path("p").write_bytes(b"\n".join(patterns))
    Path("t").write_bytes(text)
    hits = ms.scan(text, patterns)
    lines = [b"%d:%s\n" % (a, text[a:b]) for a, b in zip(hits.start.tolist(), hits.end.tolist(), strict=True)]
    for room in 1, 50, 1 << 20:
        monkeypatch.setattr(_cli_scan, "ROOM", room)
        assert main(["scan", "p", "t"]) == 0
        assert out(capfdbinary) == b"".join(lines)


def test_json(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["scan", "list", "--json", "text"]) == 0
    records = [json.loads(line) for line in out(capfdbinary).splitlines()]
    assert records[0] == {"file": "text", "start": 0, "length": 4, "index": 0, "text": "Oslo"}
    assert records[2] == {"file": "text", "start": 24, "length": 5, "index": 2, "text": {"base64": "TGltYf8="}}
    assert main(["scan", "list", "--json", "--count", "text", "other"]) == 0
    counts = [json.loads(line) for line in out(capfdbinary).splitlines()]
    assert counts == [{"file": "text", "count": 3}, {"file": "other", "count": 0}]


def test_modes_and_folding(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["scan", "list", "--fold", "text"]) == 0
    assert out(capfdbinary) == b"0:Oslo\n9:New York\n18:OSLO\n24:Lima\xff\n"
    assert main(["scan", "print.mph", "--mode", "words", "--ngrams", "1", "--ngrams", "2", "text"]) == 0
    assert out(capfdbinary) == b"0:Oslo\n9:New York\n"
    assert main(["scan", "list", "--mode", "windows", "--width", "4", "text"]) == 0
    assert out(capfdbinary) == b"0:Oslo\n"


def test_standard_input(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert main(["scan", "list", "--threads", "2", "-"]) == 0
    assert out(capfdbinary) == b"0:Oslo\n9:New York\n24:Lima\xff\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert main(["scan", "list", "-", "other", "-c"]) == 0
    assert out(capfdbinary) == b"<stdin>:3\nother:0\n"


def test_files_that_cannot_be_read_do_not_stop_it(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["scan", "list", "absent", "text", ".", "-o"]) == 2
    captured = capfdbinary.readouterr()
    assert captured.out == b"text:Oslo\ntext:New York\ntext:Lima\xff\n"
    lines = captured.err.splitlines()
    assert len(lines) == 2 and lines[0].startswith(b"mphfstore: absent: ") and lines[1].startswith(b"mphfstore: .: ")
    assert main(["scan", "list", "absent", "text", "-q"]) == 0


def test_a_dictionary_from_a_pipe(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Oslo\r\nLima\xff")))
    assert main(["scan", "-", "text", "-o"]) == 0
    assert out(capfdbinary) == b"Oslo\nLima\xff\n"
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(b"Oslo\n",))
    writer.start()
    assert main(["scan", "pipe", "text"]) == 0
    writer.join()
    assert out(capfdbinary) == b"0:Oslo\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent", "text"], "absent"),
        (["list", "absent"], "absent"),
        (["print.mph", "text"], "scan=True"),
        (["list", "text", "--mode", "windows"], "needs a width"),
        (["list", "text", "--ngrams", "2"], "ngrams"),
        (["list", "text", "--threads", "0"], "threads"),
        (["-", "-"], "either the dictionary or a text"),
    ],
)
def test_errors(folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["scan", *arguments]) == 2
    error = capfd.readouterr().err
    assert error.startswith("mphfstore: ") and error.count("\n") == 1 and message in error


def test_build_writes_the_prefilter(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (folder / "in").write_bytes(b"Oslo\nLima\n")
    assert main(["build", "new.mph", "in", "--values", "none", "--scan"]) == 0
    assert main(["scan", "new.mph", "text", "-c"]) == 0
    assert out(capfdbinary) == b"2\n"
