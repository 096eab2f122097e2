"""The command: formats, exit statuses, messages."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import mphfstore as ms
from mphfstore._cli import commands, main

COMMANDS = tuple(commands())


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
        ("a.jsonl", "\ufeff[\"a\", \"b\"]\n", [], {"a": b"b"}),
        ("a.csv", "a\tb\n", ["--delimiter", "\\t"], {"a": b"b"}),
        ("a.csv", "a," + "x" * 200_000, [], {"a": b"x" * 200_000}),
        ("a.txt", "a\t1\r\n", [], {"a": b"1"}),
        ("a.txt", "a\t1\r", [], {"a": b"1\r"}),
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
    assert "not an integer" in lone_error(capfd)


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
        ("a.tsv", "a\t1\nb\t300\n", ["--values", "u1"], "a.tsv:2: value '300' is outside uint8"),
        ("a.tsv", "a\t1\nb\tabcde\n", ["--values", "S4"], "a.tsv:2: value 'abcde' is longer than |S4"),
        ("a.tsv", "x\t1\n", ["--key-dtype", "u4"], "a.tsv:1: "),
        ("a.tsv", "1\t1\n-1\t1\n", ["--key-dtype", "u4"], "a.tsv:2: "),
        ("a.csv", "a,1\nb\n", [], "a.csv:2: expected at least 2 columns, got 1"),
        ("a.csv", "a,1\n", ["--key-column", "word"], "no column 'word'"),
        ("a.jsonl", '["a", "1"]\n{"key": "b"}\n', [], "a.jsonl:2: no field 'value'"),
        ("a.jsonl", '["a", "1"]\n{]\n', [], "a.jsonl:2: not JSON"),
        ("a.jsonl", '["a", 1]\n', [], "a.jsonl:1: value 1 is not a string"),
        ("a.tsv", "a\t1\n", ["--values", "O"], "no numpy dtype"),
        ("a.tsv", "a\t1\nb\t1_0\n", ["--values", "i4"], "a.tsv:2: value '1_0' is not an integer"),
        ("a.tsv", "a\t1e39\n", ["--values", "f4"], "a.tsv:1: value '1e39' is outside float32"),
        ("a.tsv", "a\t1e400\n", ["--values", "f8"], "a.tsv:1: value '1e400' is outside float64"),
        ("a.tsv", "a\tx\0\n", ["--values", "S4"], "ends in NUL"),
        ("a.tsv", "a\t1\n", ["--values", "f4,,"], "no numpy dtype"),
        ("a.tsv", "1\t1\n", ["--key-dtype", "f4"], "--key-dtype: 'f4' is no numpy dtype of integers"),
        ("a.tsv", "a\t1\n", ["--header"], "--header is not for tsv"),
        ("a.csv", "a,b\n", ["--delimiter", ";;"], "--delimiter is one character"),
        ("a.csv", 'a,"b\nc"\nd\n', [], "a.csv:3: expected at least 2 columns"),
        ("a.csv", 'a,1\nb,"x\n\n', [], "a.csv:2: not CSV"),
        ("a.csv", 'k,v\n\na,"b\nc"\nb,1\na,2\n', ["--header"], "a.csv:6: duplicate key b'a', first in line 3"),
        ("a.csv", "", ["--header"], "a.csv:1: no header line"),
        ("a.jsonl", '["a", 1.7]\n', ["--values", "i4"], "a.jsonl:1: value 1.7 is not an integer"),
        ("a.jsonl", '["a", true]\n', ["--values", "f4"], "a.jsonl:1: value True is not a number"),
        ("a.jsonl", '["a", NaN]\n', ["--values", "f4"], "a.jsonl:1: not JSON: NaN"),
        ("a.jsonl", '["a", 1e400]\n', ["--values", "f4"], "a.jsonl:1: value inf is outside"),
        ("a.jsonl", '["a", "b"]\n["\\ud800", "b"]\n', [], "a.jsonl:2: key '\\ud800' is not valid Unicode"),
        ("a.jsonl", "[" * 100_000, [], "a.jsonl:1: not JSON"),
        ("a.jsonl", '["a", "b", "c"]\n', [], "a.jsonl:1: expected [key, value] or an object"),
        ("a.tsv", "a\t1\n", ["--metadata", "NaN"], "--metadata is not JSON"),
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


LAYOUT = "key-column value-column table header delimiter escape "
STORAGE = (
    "keys compression dedupe false-positive-rate on-duplicate fingerprint-bits preset method leaf-size bucket-size "
    "seed threads scan backend metadata no-progress quiet "
)
OPTIONS = {
    "build": "format values key-dtype " + LAYOUT + STORAGE,
    "import": "format values key-dtype " + LAYOUT + STORAGE,
    "merge": "values " + STORAGE,
    "export": "format no-progress " + LAYOUT,
    "dump": "format " + LAYOUT,
    "diff": "json quiet no-progress",
    "get": "json null quiet",
    "has": "json null quiet",
    "info": "devices json",
    "verify": "json quiet",
    "scan": "mode width ngrams fold count only-matching json null quiet threads backend",
}  # fmt: skip


@pytest.mark.parametrize(("command", "options"), OPTIONS.items())
def test_help_explains_every_option(command: str, options: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    explained = re.findall(r"^  (?:-\w, )?--([\w-]+)(?: \S+)*?(?:  +|\n {20,})\w", capsys.readouterr().out, re.M)
    assert sorted({*explained, "help"}) == sorted([*options.split(), "help"])


def test_usage_errors_are_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    for wrong in (["build"], ["get", "s"], ["get", "s", "k", "--js"], ["build", "s", "-", "--seed", "x"], []):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ended.value.code == 2
        assert "--help" in lone_error(capfd)


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capfd.readouterr().out) == (0, f"mphfstore {version('mphfstore')}\n")


def test_csv_keeps_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xff,\xfe\n")
    assert main(["build", str(tmp_path / "s"), str(tmp_path / "a.csv")]) == 0
    assert ms.open(tmp_path / "s")[b"\xff"] == b"\xfe"


def test_more_records_than_are_held_at_a_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i}\t{i * i}\n" for i in range(10_000)]
    (tmp_path / "in").write_text("".join(lines))
    path, source = str(tmp_path / "s"), str(tmp_path / "in")
    assert main(["build", path, source, "--key-dtype", "u4", "--values", "u8"]) == 0
    assert ms.open(path).get_many(np.arange(10_000)).tolist() == [i * i for i in range(10_000)]
    (tmp_path / "in").write_text("".join(lines) + "9000\t1\n")
    assert main(["build", path, source]) == 2
    assert "in:10001: duplicate key b'9000', first in line 9001" in lone_error(capfd)
    assert main(["build", path, source, "--on-duplicate", "last"]) == 0
    assert ms.open(path)["9000"] == b"1"


def test_options_reach_the_file(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\t1\n")
    options = ["--fingerprint-bits=9", "--method=brute", "--leaf-size=5", "--bucket-size=7", "--seed=3", "--threads=1"]
    assert main(["build", str(tmp_path / "s"), str(tmp_path / "in"), *options, '--metadata={"x": [1]}']) == 0
    info = ms.open(tmp_path / "s").info()
    names = ("fingerprint_bits", "method", "leaf_size", "bucket_size", "seed", "metadata")
    assert [info[name] for name in names] == [9, "brute", 5, 7, 3, {"x": [1]}]
    assert main(["build", str(tmp_path / "t"), str(tmp_path / "in"), "--preset=fast"]) == 0
    fast = ms.open(tmp_path / "t").info()
    assert (fast["leaf_size"], fast["bucket_size"]) == (ms.PRESETS["fast"].leaf_size, ms.PRESETS["fast"].bucket_size)


def test_integer_keys_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ms.build(tmp_path / "s", {1: b"x", -5: b"y"}, key_dtype="i2")
    path = str(tmp_path / "s")
    assert main(["get", path, "-5", "1"]) == 0
    assert capfd.readouterr().out == "y\nx\n"
    assert main(["has", path, "99999"]) == 1, "outside the dtype is absent"
    assert main(["has", "--json", path, "-5", "2"]) == 1
    out = capfd.readouterr().out.splitlines()
    assert list(map(json.loads, out)) == [{"key": -5, "found": True}, {"key": 2, "found": False}]
    assert main(["has", path, "1_0"]) == 2


def test_json_says_what_text_cannot(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ms.build(tmp_path / "b", {b"\xff": b"\xfe\n"})
    assert main(["get", "--json", str(tmp_path / "b"), os.fsdecode(b"\xff")]) == 0
    assert json.loads(capfd.readouterr().out) == {"key": {"base64": "/w=="}, "value": {"base64": "/go="}}
    ms.build(tmp_path / "r", {"a": (1.5, float("nan"))}, values=[("x", "f8"), ("y", "f8")])
    assert main(["get", "--json", str(tmp_path / "r"), "a"]) == 0
    assert json.loads(capfd.readouterr().out) == {"key": "a", "value": {"x": 1.5, "y": None}}
    assert main(["get", str(tmp_path / "r"), "a"]) == 0
    assert json.loads(capfd.readouterr().out) == {"x": 1.5, "y": None}
    ms.build(tmp_path / "f", {"a": 0.1}, values="f4")
    assert main(["get", str(tmp_path / "f"), "a"]) == 0
    assert capfd.readouterr().out == "0.1\n"


def test_quiet_leaves_the_exit_status(store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["has", "--quiet", store, "one", "nine"]) == 1
    assert main(["verify", "--quiet", store]) == 0
    assert capfd.readouterr() == ("", "")


def test_files_of_other_kinds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ("filter", "function", "keys")
    some, function, keys = (str(tmp_path / name) for name in names)
    ms.Filter.build(["a", "b"]).save(some)
    ms.MPHF.build(["a", "b"]).save(function)
    ms.build(keys, ["a", "b"], values=None)
    for path, message in ((some, "filter: it has no values"), (function, "bare function"), (keys, "use has")):
        assert main(["get", path, "a"]) == 2
        assert message in lone_error(capfd)
    assert main(["has", function, "a"]) == 2
    lone_error(capfd)
    assert main(["has", some, "b", "a"]) == main(["has", keys, "b", "a"]) == 0
    assert main(["verify", some, function, keys]) == 0
    assert capfd.readouterr().out == "b\na\n" * 2 + "".join(f"{tmp_path / name}: ok\n" for name in names)
    for path, kind in zip((some, function, keys), ("filter", "mphf", "store"), strict=True):
        assert main(["info", path]) == 0
        assert f"kind                 {kind}, format version 1\nkeys                 2\n" in capfd.readouterr().out


def test_verify_for_programs(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--json", store, store + ".none"]) == 2
    out, err = capfd.readouterr()
    message = f"{store}.none: No such file or directory"
    assert list(map(json.loads, out.splitlines())) == [
        {"file": store, "ok": True, "error": None},
        {"file": store + ".none", "ok": False, "error": message},
    ]
    assert err == f"mphfstore: {message}\n"


def test_the_input_is_not_built_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text("a\t1\n")
    (tmp_path / "b.tsv").symlink_to("a.tsv")
    assert main(["build", str(tmp_path / "b.tsv"), str(tmp_path / "a.tsv")]) == 2
    assert "is the input, too" in lone_error(capfd)
    assert (tmp_path / "a.tsv").read_text() == "a\t1\n"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a directory that not even root can write to")
def test_a_target_is_named_and_not_its_temporary(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text("a\tb\n")
    assert main(["build", "/proc/none", str(tmp_path / "in")]) == 2
    assert lone_error(capfd).startswith("mphfstore: /proc/none: ")


def test_text_and_json_values_and_exact_keys(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "s")
    (tmp_path / "in.tsv").write_text('a\t{"x": [1, null]}\nb\tnull\nc\t"text"\n')
    packing = ["--keys", "exact", "--compression", "zstd", "--dedupe", "--false-positive-rate", "0.01"]
    assert main(["build", store, str(tmp_path / "in.tsv"), "--values", "json", *packing]) == 0
    assert dict(ms.open(store)) == {b"a": {"x": [1, None]}, b"b": None, b"c": "text"}
    info = ms.open(store).info()
    assert (info["key_storage"], info["compression"], info["fingerprint_bits"]) == ("exact", "zstd", 7)
    assert main(["get", store, "a", "b", "c"]) == 0
    assert capfd.readouterr().out == '{"x": [1, null]}\nnull\n"text"\n'
    assert main(["get", "--json", store, "b", "d"]) == 1
    assert capfd.readouterr().out == '{"key": "b", "value": null}\n'
    assert main(["info", store]) == 0
    assert "exact" in (shown := capfd.readouterr().out) and "compressed by zstd" in shown
    (tmp_path / "in.jsonl").write_text('["a", {"x": 1}]\n["b", "text"]\n')
    assert main(["build", store, str(tmp_path / "in.jsonl"), "--values", "json"]) == 0
    assert ms.open(store).get_many(["a", "b"]) == [{"x": 1}, "text"]
    (tmp_path / "in.csv").write_text("a,größe\nb,\n")
    assert main(["build", store, str(tmp_path / "in.csv"), "--values", "str", "--keys", "fingerprint"]) == 0
    assert ms.open(store).get_many(["a", "b"]) == ["größe", ""]
    assert main(["get", store, "a"]) == 0 and capfd.readouterr().out == "größe\n"


@pytest.mark.parametrize(
    ("values", "line", "message"),
    [("str", b"k\t\xff", "is not UTF-8"), ("json", b"k\t{1}", "is not JSON"), ("json", b"k\tNaN", "is not JSON")],
)
def test_values_that_are_no_text_and_no_json_name_their_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], values: str, line: bytes, message: str
) -> None:
    good = b'a\t"x"\n'
    (tmp_path / "in.tsv").write_bytes(good + line + b"\n")
    assert main(["build", str(tmp_path / "s"), str(tmp_path / "in.tsv"), "--values", values]) == 2
    assert "in.tsv:2: value" in (error := capfd.readouterr().err) and message in error
    assert not (tmp_path / "s").exists()
