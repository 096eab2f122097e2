"""Building from text, and what all formats share; malformed input is told where."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from imports import RECORDS, built, contents, database, environment, refused, write_ipc, write_parquet

import mphfstore as ms
from mphfstore import _cdbmake
from mphfstore._cli import main
from mphfstore._records import BadRecord

# cdbmake


def cdb_text(records: dict[bytes, bytes]) -> bytes:
    return b"".join(b"+%d,%d:%b->%b\n" % (len(k), len(v), k, v) for k, v in records.items()) + b"\n"


def test_cdbmake(tmp_path: Path) -> None:
    (tmp_path / "a.cdbmake").write_bytes(cdb_text(RECORDS))
    assert contents(built(tmp_path, tmp_path / "a.cdbmake"), RECORDS) == RECORDS
    (tmp_path / "b").write_bytes(b"+1,4:7->1500\n\n")
    store = built(tmp_path, tmp_path / "b", "--format", "cdbmake", "--key-dtype", "u2", "--values", "u4")
    assert store[7] == 1500


def test_cdbmake_from_a_stream_that_gives_a_byte_at_a_time() -> None:
    class Drop(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1)

    read = list(_cdbmake.cdbmake(Drop(cdb_text(RECORDS))))
    assert {key: value for _, key, value in read} == RECORDS
    assert [position for position, _, _ in read] == [0, 12, 29, 39, 56]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "byte 0: expected '+' or the empty line that ends the records, got the end of the file"),
        (b"+1,1:a->b\n", "byte 10: expected '+' or the empty line that ends the records, got the end of the file"),
        (b"+1,1:a->b\n\n\n", "byte 11: something follows the empty line that ends the records"),
        (b"+1,1:a->b\n-1,1:a->b\n\n", "byte 10: expected '+' or the empty line that ends the records, got '-'"),
        (b"+x,1:a->b\n\n", "byte 1: expected a length of the key, got 'x'"),
        (b"+-1,1:a->b\n\n", "byte 1: expected a length of the key, got '-'"),
        (b"+1;1:a->b\n\n", "byte 2: expected ',', got ';'"),
        (b"+1,:a->b\n\n", "byte 3: expected a length of the data, got ':'"),
        (b"+1,1 :a->b\n\n", "byte 4: expected ':', got ' '"),
        (b"+1,12", "byte 5: expected ':', got the end of the file"),
        (b"+1", "byte 2: expected ',', got the end of the file"),
        (b"+1,1:a=>b\n\n", "byte 6: expected '->' after the key, got '=>'"),
        (b"+2,1:a->b\n\n", "byte 7: expected '->' after the key, got '>b'"),
        (b"+1,1:a", "byte 6: the file ends within '->': expected 2 bytes, got 0"),
        (b"+1,1:a->bb\n\n", "byte 9: expected a newline after the data, got 'b'"),
        (b"+1,1:a->b", "byte 9: expected a newline after the data, got the end of the file"),
        (b"+5,1:a", "byte 6: the file ends within the key: expected 5 bytes, got 1"),
        (b"+1,9999999999999999999:a->b\n", "byte 28: the file ends within the data: expected 9999999999999999999 "
                                           "bytes, got 2"),
        (b"+9999999999999999999,1:a", "byte 24: the file ends within the key: expected 9999999999999999999 "
                                      "bytes, got 1"),
        (b"+11111111111111111111,1:a", "byte 1: a length of the key of more than 19 digits"),
    ],
)  # fmt: skip
def test_cdbmake_names_the_byte(text: bytes, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cdbmake").write_bytes(text)
    assert refused(tmp_path, capfd, tmp_path / "a.cdbmake") == f"a.cdbmake: {message}"


def test_cdbmake_takes_nothing_that_is_damaged() -> None:
    """Every byte left out or doubled is an error, unless it says the same."""
    records = {b"ab": b"12", b"c": b""}
    text = cdb_text(records)
    for at in range(len(text)):
        for damaged in (text[:at] + text[at + 1 :], text[:at] + text[at : at + 1] + text[at:]):
            try:
                assert {key: value for _, key, value in _cdbmake.cdbmake(io.BytesIO(damaged))} == records
                assert b",00:" in damaged
            except BadRecord as error:
                assert error.position is not None and 0 <= error.position <= len(damaged)


# text, and what all formats share


def test_escapes_of_tsv(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_bytes(b"a\\tb\t1\\n\\\\n\r\nc\td\te\n")
    store = built(tmp_path, tmp_path / "a.tsv", "--escape")
    assert contents(store, [b"a\tb", b"c"]) == {b"a\tb": b"1\n\\n", b"c": b"d\te"}
    (tmp_path / "a.tsv").write_bytes(b"a\t1\nb\\x\t2\n")
    assert refused(tmp_path, capfd, tmp_path / "a.tsv", "--escape").startswith(
        "a.tsv:2: '\\\\x' in 'b\\\\x' is no escape"
    )
    (tmp_path / "a.tsv").write_bytes(b"a\t1\\\n")
    assert "a.tsv:1: '\\\\'" in refused(tmp_path, capfd, tmp_path / "a.tsv", "--escape")


def test_base64_in_json_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text(
        '[{"base64": "/w=="}, {"base64": ""}]\n{"key": "a", "value": {"base64": "AA=="}}\n'
    )
    assert contents(built(tmp_path, tmp_path / "a.jsonl"), [b"\xff", b"a"]) == {b"\xff": b"", b"a": b"\0"}
    (tmp_path / "b.jsonl").write_text('["a", "b"]\n["c", {"base64": "?"}]\n')
    assert refused(tmp_path, capfd, tmp_path / "b.jsonl") == "b.jsonl:2: value {'base64': '?'} is not base64"
    (tmp_path / "c.jsonl").write_text('["c", {"base64": "AA==", "b": 1}]\n')
    assert "is not a string" in refused(tmp_path, capfd, tmp_path / "c.jsonl")
    (tmp_path / "d.jsonl").write_text('{"base64": "/w=="}\n"a"\n')
    assert b"\xff" in built(tmp_path, tmp_path / "d.jsonl", "--values", "none")


def test_records_of_several_fields(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dtype = '[["n", "<i4"], ["at", "<f4", [2]], ["name", "<U3"]]'
    (tmp_path / "a.jsonl").write_text('["a", {"n": 1, "at": [0.5, "NaN"], "name": "x"}]\n["b", [2, [1, 2], ""]]\n')
    store = built(tmp_path, tmp_path / "a.jsonl", "--values", dtype)
    assert store["a"]["at"][0] == 0.5 and np.isnan(store["a"]["at"][1]) and store["a"]["name"] == "x"
    assert store["b"]["n"] == 2
    (tmp_path / "a.tsv").write_text('c\t[3, [1, 2], "xyz"]\n')
    assert built(tmp_path, tmp_path / "a.tsv", "--values", dtype)["c"]["name"] == "xyz"
    for text, message in (
        ('{"n": 1}', "is no record of n, at, name"),
        ('[1, [1, 2, 3], ""]', "field 'at': [1, 2, 3] is not an array of 2"),
        ('[1, [1, 2], "long"]', "field 'name': 'long' is longer than <U3"),
        ("{", "is not JSON"),
    ):
        (tmp_path / "b.tsv").write_text(f"a\t{text}\n")
        error = refused(tmp_path, capfd, tmp_path / "b.tsv", "--values", dtype)
        assert error.startswith("b.tsv:1: value ") and message in error


def test_truths_and_times(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text("a\ttrue\nb\t0\n")
    assert built(tmp_path, tmp_path / "a.tsv", "--values", "bool").get_many(["a", "b"]).tolist() == [True, False]
    (tmp_path / "b.tsv").write_text("a\t2024-02-29\n")
    assert built(tmp_path, tmp_path / "b.tsv", "--values", "M8[s]")["a"] == np.datetime64("2024-02-29T00:00:00")
    assert "neither true nor false" in refused(tmp_path, capfd, tmp_path / "b.tsv", "--values", "bool")
    assert "no time as ISO 8601" in refused(tmp_path, capfd, tmp_path / "a.tsv", "--values", "M8[s]")
    (tmp_path / "c.tsv").write_text("a\t2024-02-29T12\n")
    assert "finer than it" in refused(tmp_path, capfd, tmp_path / "c.tsv", "--values", "M8[D]")


def test_the_largest_number_of_a_dtype_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(f"a\t{np.finfo('f4').max}\nb\t-inf\n")
    assert built(tmp_path, tmp_path / "a.tsv", "--values", "f4")["a"] == np.finfo("f4").max


def test_the_format_is_told_by_the_first_bytes_before_the_suffix(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.db", pa.table({"k": ["a"], "v": ["b"]}))
    database(tmp_path / "b.parquet", "CREATE TABLE t (k, v)", "INSERT INTO t VALUES ('a', 'b')")
    environment(tmp_path / "c.tsv", None, {b"a": b"b"}, subdir=False)
    write_ipc(tmp_path / "d", pa.table({"k": ["a"], "v": ["b"]}))
    for name in ("a.db", "b.parquet", "c.tsv", "d"):
        assert built(tmp_path, tmp_path / name, "--values", "bytes")["a"] == b"b", name


def test_import_is_build(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n")
    assert main(["import", str(tmp_path / "s"), str(tmp_path / "a.tsv"), "--no-progress"]) == 0
    assert ms.open(tmp_path / "s")["a"] == b"b"


@pytest.mark.parametrize("kind", ["parquet", "lmdb", "sqlite", "store"])
def test_formats_that_need_a_file(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "a pipe" in (error := refused(tmp_path, capfd, "-", "--format", kind)) or "standard input" in error


def test_a_store_that_keeps_fingerprints_cannot_be_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ms.build(tmp_path / "a.mph", {"a": b"b"})
    message = "a.mph: this store keeps fingerprints, not its keys: build it with --keys exact"
    assert refused(tmp_path, capfd, tmp_path / "a.mph") == message
    ms.Filter.build(["a"]).save(tmp_path / "b.mph")
    assert refused(tmp_path, capfd, tmp_path / "b.mph") == "b.mph is a filter: it has no records"


# duplicates


def test_every_repetition_is_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text("a\t1\nb\t2\na\t3\nc\t4\nb\t5\na\t6\n")
    (tmp_path / "s").write_bytes(b"old")
    source = f"{tmp_path}/a.tsv"
    assert main(["build", str(tmp_path / "s"), source, "--on-duplicate", "list"]) == 2
    out, error = capfd.readouterr()
    assert out.splitlines() == [
        f"{source}:3: duplicate key b'a', first in line 1",
        f"{source}:5: duplicate key b'b', first in line 2",
        f"{source}:6: duplicate key b'a', first in line 1",
    ]
    assert error == "mphfstore: 3 records repeat the keys of 2 others\n"
    assert (tmp_path / "s").read_bytes() == b"old"
    (tmp_path / "b.tsv").write_text("a\t1\nb\t2\n")
    assert len(built(tmp_path, tmp_path / "b.tsv", "--on-duplicate", "list")) == 2


def test_list_as_an_option_of_build(tmp_path: Path) -> None:
    keys = [3, 1, 3, 2, 1, 3]
    with pytest.raises(ms.DuplicateKeyError) as error:
        ms.build(tmp_path / "s", (np.array(keys), [b""] * 6), on_duplicate="list")
    assert error.value.repeated == {3: [0, 2, 5], 1: [1, 4]}
    assert (error.value.key, error.value.positions) == (3, (0, 2))
    assert not (tmp_path / "s").exists()
