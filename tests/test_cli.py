"""The command: formats, exit statuses, messages."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import mphfstore as ms
from mphfstore._cli import main

COMMANDS = ("build", "get", "has", "info", "verify")


@pytest.fixture
def store(tmp_path: Path) -> str:
    (tmp_path / "in.tsv").write_bytes(b"one\t1\ntwo\t2\ttwo\n\xff\xfe\t\n\tempty key\nlast\t5")
    assert main(["build", str(tmp_path / "s.mph"), str(tmp_path / "in.tsv")]) == 0
    return str(tmp_path / "s.mph")


def lone_error(capfd: pytest.CaptureFixture[str]) -> str:
    error = capfd.readouterr().err
    assert error.startswith("mphfstore: ") and error.count("\n") == 1, error
    return error


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".mphtmp")]


def test_tsv_is_taken_as_bytes_up_to_the_first_tab(store: str) -> None:
    opened = ms.open(store)
    assert opened.get_many([b"one", b"two", b"\xff\xfe", b"", b"last"]) == [b"1", b"2\ttwo", b"", b"empty key", b"5"]


def test_get_prints_values(store: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["get", store, "one", "two"]) == 0
    assert capfdbinary.readouterr().out == b"1\n2\ttwo\n"
    assert main(["get", store, "-0", "one"]) == 0
    assert capfdbinary.readouterr().out == b"1\0"
    assert main(["get", store, "--json", "one"]) == 0
    assert json.loads(capfdbinary.readouterr().out) == {"key": "one", "value": "1"}


def test_get_names_absent_keys_and_exits_with_1(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["get", store, "one", "nine"]) == 1
    out, err = capfd.readouterr()
    assert (out, err) == ("1\n", "mphfstore: no key nine\n")
    assert main(["get", store, "--quiet", "nine"]) == 1
    assert capfd.readouterr().err == ""


def test_has_is_silent_with_one_key_and_prints_the_present_of_several(
    store: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["has", store, "one"]) == 0
    assert main(["has", store, "nine"]) == 1
    assert capfd.readouterr().out == ""
    assert main(["has", store, "one", "nine", "two"]) == 1
    assert capfd.readouterr().out == "one\ntwo\n"


def test_info_and_verify(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["info", store]) == 0
    assert "keys                 5\n" in capfd.readouterr().out
    assert main(["info", "--json", store]) == 0
    assert json.loads(capfd.readouterr().out)["sections"]["fingerprints"] == 18
    damaged = bytearray(Path(store).read_bytes())
    damaged[-1] ^= 1
    Path(store + ".bad").write_bytes(damaged)
    assert main(["verify", store, store + ".bad"]) == 2
    out, err = capfd.readouterr()
    assert out == f"{store}: ok\n"
    assert "block 0 of 64 KiB of section blob is damaged" in err


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        ("a.csv", 'x,1\r\n"a,b",2\r\n', [], {"x": b"1", "a,b": b"2"}),
        ("a.csv", "i;n\n7;x\n", ["--delimiter=;", "--header", "--key-column=n", "--value-column=1"], {"x": b"7"}),
        ("a.csv", "\ufeffk,v\nä,ö\n", ["--header", "--key-column=k", "--value-column=v"], {"ä": "ö".encode()}),
        ("a.jsonl", '{"key": "a", "value": "1"}\n\n["b", "2"]\n', [], {"a": b"1", "b": b"2"}),
        ("a.jsonl", '{"w": "a", "n": "1"}\n', ["--key-column", "w", "--value-column", "n"], {"a": b"1"}),
        ("a.txt", "a\t1\r\n", [], {"a": b"1"}),
        ("a.tsv", "", [], {}),
    ],
)  # fmt: skip
def test_formats(name: str, text: str, options: list[str], expected: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode())
    assert main(["build", str(tmp_path / "s"), str(tmp_path / name), *options]) == 0
    opened = ms.open(tmp_path / "s")
    assert len(opened) == len(expected)
    assert {key: opened[key] for key in expected} == expected


def test_numbers_as_values_and_as_keys(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text("1\t0.5\n-2\t7\n")
    path = str(tmp_path / "s")
    assert main(["build", path, str(tmp_path / "in"), "--values", "f8", "--key-dtype", "i4", "--seed", "1"]) == 0
    assert ms.open(path).get_many([1, -2]).tolist() == [0.5, 7.0]
    assert main(["get", path, "1"]) == 0
    assert capfd.readouterr().out == "0.5\n"
    assert main(["has", path, "x"]) == 2
    assert "are integers" in lone_error(capfd)


def test_keys_alone(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\nb\n")
    assert main(["build", str(tmp_path / "s"), str(tmp_path / "in"), "--values", "none"]) == 0
    assert "b" in ms.open(tmp_path / "s")


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.tsv", "a\t1\nb 2\n", [], "a.tsv:2: no tab"),
        ("a.tsv", "a\t1\nb\t2\n\na\t3\n", [], "a.tsv:3: no tab"),
        ("a.tsv", "a\t1\nb\t2\na\t3\n", [], "a.tsv:3: duplicate key b'a', first in line 1"),
        ("a.tsv", "a\t1\nb\tx\n", ["--values", "i4"], "a.tsv:2: "),
        ("a.tsv", "a\t1\nb\t300\n", ["--values", "u1"], "a.tsv:2: 300 is outside uint8"),
        ("a.tsv", "a\t1\nb\tabcde\n", ["--values", "S4"], "longer than"),
        ("a.tsv", "x\t1\n", ["--key-dtype", "u4"], "a.tsv:1: "),
        ("a.tsv", "1\t1\n-1\t1\n", ["--key-dtype", "u4"], "a.tsv:2: "),
        ("a.csv", "a,1\nb\n", [], "a.csv:2: 1 columns"),
        ("a.csv", "a,1\n", ["--key-column", "word"], "no column 'word'"),
        ("a.jsonl", '["a", "1"]\n{"key": "b"}\n', [], "a.jsonl:2: no field 'value'"),
        ("a.jsonl", '["a", "1"]\n{]\n', [], "a.jsonl:2: neither"),
        ("a.jsonl", '["a", 1]\n', [], "a.jsonl:1: a value is a string"),
        ("a.tsv", "a\t1\n", ["--values", "O"], "Python objects"),
        ("a.tsv", "a\t1\n", ["--fingerprint-bits", "33"], "0 to 32"),
        ("a.tsv", "a\t1\n", ["--metadata", "{"], "not JSON"),
    ],
)
def test_bad_input_is_an_error_and_changes_nothing(
    name: str, text: str, options: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "s").write_bytes(b"old")
    assert main(["build", str(tmp_path / "s"), str(tmp_path / name), *options]) == 2
    assert message in lone_error(capfd)
    assert (tmp_path / "s").read_bytes() == b"old"
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"a\tb\n", b"\x89MPH\r\n\x1a\n" + bytes(20)])
def test_a_file_that_is_none_of_ours(content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s").write_bytes(content)
    for command in (["get", str(tmp_path / "s"), "a"], ["info", str(tmp_path / "s")], ["verify", str(tmp_path / "s")]):
        assert main(command) == 2
        lone_error(capfd)


def test_missing_files_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["get", str(tmp_path / "none"), "a"]) == 2
    assert "none: No such file" in lone_error(capfd)
    assert main(["build", str(tmp_path / "s"), str(tmp_path / "none")]) == 2
    assert "none: No such file" in lone_error(capfd)
    (tmp_path / "in").write_text("a\tb\n")
    assert main(["build", str(tmp_path / "no" / "s"), str(tmp_path / "in")]) == 2
    assert "No such file" in lone_error(capfd)


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


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "usage: mphfstore " + command in capsys.readouterr().out


def test_wrong_usage_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fetch"])
    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_progress_goes_to_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").write_text("a\tb\n")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["build", str(tmp_path / "s"), str(tmp_path / "in")]) == 0
    assert "100 % of 1 keys" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["build", "--quiet", str(tmp_path / "s"), str(tmp_path / "in")]) == 0
    assert sys.stderr.getvalue() == ""
