"""Comparing stores and joining them; progress on a terminal."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mphfstore as ms
from mphfstore._cli import main
from mphfstore._progress import Progress


def exact(path: Path, items: Any, **options: Any) -> str:
    ms.build(path, items, keys="exact", **options)
    return str(path)


def compared(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    status = main(["diff", *arguments])
    out, error = capfd.readouterr()
    assert error == ""
    return status, sorted(out.splitlines())


# diff


def test_stores_with_the_same_records(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    records = {f"key {i}": b"%d" % i for i in range(1000)}
    a = exact(tmp_path / "a", records, seed=1)
    b = exact(tmp_path / "b", dict(reversed(records.items())), seed=2, preset="fast")
    assert compared(capfd, a, b) == (0, [])
    assert compared(capfd, a, b, "--json") == (0, [])
    assert compared(capfd, exact(tmp_path / "c", {}), exact(tmp_path / "d", {})) == (0, [])


def test_every_difference_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    common = {f"key {i}": b"%d" % i for i in range(100_000)}
    a = exact(tmp_path / "a", common | {"only a": b"1", "both": b"2"})
    b = exact(tmp_path / "b", common | {"only b": b"3", "both": b"4"})
    assert compared(capfd, a, b) == (1, ["! both", "< only a", "> only b"])
    assert compared(capfd, b, a) == (1, ["! both", "< only b", "> only a"])
    assert compared(capfd, a, b, "--quiet") == (1, [])
    status, lines = compared(capfd, a, b, "--json")
    assert status == 1 and [json.loads(line) for line in lines] == [
        {"key": "both", "a": "2", "b": "4"}, {"key": "only a", "a": "1"}, {"key": "only b", "b": "3"}
    ]  # fmt: skip


def test_numbers_are_compared_bit_by_bit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    keys = np.arange(5)
    values = np.array([np.nan, 0.0, 1.0, 2.0, 3.0])
    a, b = exact(tmp_path / "a", (keys, values), values="f8"), exact(tmp_path / "b", (keys, values), values="f8")
    assert compared(capfd, a, b) == (0, [])
    other = exact(tmp_path / "c", (keys + 1, values), values="f8")
    assert compared(capfd, a, other)[1] == ["! 1", "! 2", "! 3", "! 4", "< 0", "> 5"]
    _, lines = compared(capfd, a, other, "--json")
    assert {"key": 1, "a": 0.0, "b": "NaN"} in [json.loads(line) for line in lines]


def test_json_is_compared_as_what_it_says(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a = exact(tmp_path / "a", {"k": {"x": 1, "y": [None]}, "t": 1}, values="json")
    b = exact(tmp_path / "b", {"k": {"y": [None], "x": 1}, "t": True}, values="json")
    assert compared(capfd, a, b) == (1, ["! t"])


def test_keys_alone_are_compared(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a, b = exact(tmp_path / "a", ["x", "y"], values=None), exact(tmp_path / "b", ["y", "z"], values=None)
    assert compared(capfd, a, b) == (1, ["< x", "> z"])
    assert list(map(json.loads, compared(capfd, a, b, "--json")[1])) == [
        {"key": "x", "a": True}, {"key": "z", "b": True}
    ]  # fmt: skip


def test_bytes_and_str_are_the_same_keys(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a, b = exact(tmp_path / "a", {"ä": b"1", "b": b"2"}), exact(tmp_path / "b", {"ä".encode(): b"1", b"\xff": b"2"})
    assert compared(capfd, a, b, "--json")[1] == ['{"key": "b", "a": "2"}', '{"key": {"base64": "/w=="}, "b": "2"}']


def test_stores_that_cannot_be_compared(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a = exact(tmp_path / "a", {"x": b"1"})
    ms.build(tmp_path / "prints", {"x": b"1"})
    for other, message in (
        (str(tmp_path / "prints"), "prints: this store keeps fingerprints"),
        (str(tmp_path / "none"), "none: No such file"),
        (exact(tmp_path / "i", {1: b"1"}, key_dtype="u4"), "keys are bytes, values bytes; "),
        (exact(tmp_path / "f", {"x": 1.0}, values="f8"), "values float64"),
        (exact(tmp_path / "n", ["x"], values=None), "values none"),
    ):
        for pair in ((a, other), (other, a)):
            assert main(["diff", *pair]) == 2
            out, error = capfd.readouterr()
            assert out == "" and message.rstrip("; ").split("; ")[0] in error and error.count("\n") == 1, error


# merge


def test_merge(tmp_path: Path) -> None:
    parts = [exact(tmp_path / f"{i}", {f"key {j}": b"%d" % j for j in range(i, 3000, 3)}) for i in range(3)]
    assert main(["merge", str(tmp_path / "all"), *parts, "--metadata", '"m"']) == 0
    merged = ms.open(tmp_path / "all")
    assert dict(merged.items()) == {f"key {j}": b"%d" % j for j in range(3000)}
    assert merged.info()["metadata"] == "m"
    assert main(["merge", str(tmp_path / "small"), *parts, "--keys", "fingerprint"]) == 0
    assert ms.open(tmp_path / "small")["key 7"] == b"7"
    assert main(["merge", str(tmp_path / "none"), *parts, "--values", "none"]) == 0
    assert len(list(ms.open(tmp_path / "none"))) == 3000


def test_merge_keeps_the_types(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a = exact(tmp_path / "a", {1: (1.5, 2)}, key_dtype="i2", values=[("x", "f4"), ("n", "u1")])
    b = exact(tmp_path / "b", {2: (2.5, 3)}, key_dtype="i2", values=[("x", "f4"), ("n", "u1")])
    assert main(["merge", str(tmp_path / "all"), a, b]) == 0
    merged = ms.open(tmp_path / "all")
    assert merged.info()["key_type"] == "<i2" and merged[2].item() == (2.5, 3)
    c = exact(tmp_path / "c", {3: b"x"}, key_dtype="i4")
    assert main(["merge", str(tmp_path / "all"), a, c]) == 2
    error = capfd.readouterr().err
    assert error.startswith(f"mphfstore: {c}: keys are int32, values bytes; {a}: keys are int16, values [('x'")


def test_merge_of_stores_that_share_keys(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a, b = exact(tmp_path / "a", {"x": b"1", "y": b"2"}, seed=1), exact(tmp_path / "b", {"y": b"3", "z": b"4"}, seed=1)
    target = str(tmp_path / "all")
    assert main(["merge", target, a, b]) == 2
    error = capfd.readouterr().err
    assert re.fullmatch(
        rf"mphfstore: {b}: record \d: duplicate key '?b?'y', first in {a}: record \d; "
        "--on-duplicate first or last keeps one of them\n", error
    ), error  # fmt: skip
    assert main(["merge", target, a, b, "--on-duplicate", "list"]) == 2
    out, error = capfd.readouterr()
    assert out.count("\n") == 1 and f"first in {a}: record " in out
    assert error == "mphfstore: 1 records repeat the keys of 1 others\n"
    assert not (tmp_path / "all").exists()
    for policy, value in (("first", b"2"), ("last", b"3")):
        assert main(["merge", target, a, b, "--on-duplicate", policy]) == 0
        assert ms.open(target)["y"] == value and len(ms.open(target)) == 3


def test_merge_into_one_of_its_inputs_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a, b = exact(tmp_path / "a", {"x": b"1"}), exact(tmp_path / "b", {"y": b"2"})
    assert main(["merge", b, a, b]) == 2
    assert "is the input, too" in capfd.readouterr().err
    ms.build(tmp_path / "prints", {"x": b"1"})
    assert main(["merge", str(tmp_path / "all"), a, str(tmp_path / "prints")]) == 2
    assert "keeps fingerprints, not its keys" in capfd.readouterr().err


# progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("bars", [True, False])
def test_progress_names_stages_and_rates(bars: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    now = iter(float(second) for second in range(1000))
    monkeypatch.setattr("mphfstore._progress.time.monotonic", lambda: next(now))
    with Progress(False, bars) as progress:
        for records in range(0, 1001, 100):
            progress.reading(records, records / 1000)
        progress.building(500, 1000)
        progress.building(1000, 1000)
    text = terminal.getvalue()
    assert "1000 records read" in text and "100 % of 1000 keys" in text and "/s" in text
    assert text.endswith("\n") or bars
    if not bars:
        assert "left" in text and "\x1b" not in text


@pytest.mark.parametrize("bars", [True, False])
def test_progress_makes_room_for_an_error(bars: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with pytest.raises(ValueError), Progress(False, bars) as progress:
        progress.reading(7)
        raise ValueError
    assert not terminal.getvalue().endswith("7 records read\n")


def test_without_rich_a_line_serves(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n")
    code = (
        "import sys; sys.modules['rich'] = None; from mphfstore._cli import main; "
        "sys.stderr.isatty = lambda: True; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "build", str(tmp_path / "s"), str(tmp_path / "a.tsv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "\r100 % of 1 keys" in done.stderr.replace("\n", "\r")
    assert subprocess.run([*command, "--no-progress"], capture_output=True, text=True, check=True).stderr == ""


@pytest.mark.parametrize("command", ["build", "merge", "export", "diff"])
def test_every_long_command_shows_progress(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, out = exact(tmp_path / "a.mph", {"a": b"1"}), str(tmp_path / "out.tsv")
    arguments = {"build": [out, a], "merge": [out, a], "export": [a, out], "diff": [a, a]}[command]
    for more, shows in (([], True), (["--no-progress"], False)):
        monkeypatch.setattr(sys, "stderr", terminal := Terminal())
        assert main([command, *arguments, *more]) == 0
        assert bool(terminal.getvalue()) == shows
