"""Building from every format, and what malformed input of each is told."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import mphfstore as ms
from mphfstore import _cdbmake
from mphfstore._cli import main
from mphfstore._records import BadRecord

RECORDS = {b"one": b"1", b"two": b"2\ttwo\n", b"\xff\xfe": b"", b"": b"empty key", b"nul\0": b"\0\xff"}


def built(folder: Path, source: Path, *options: str) -> Any:
    assert main(["build", str(folder / "built.mph"), str(source), *options]) == 0
    return ms.open(folder / "built.mph")


def refused(folder: Path, capfd: pytest.CaptureFixture[str], source: Path | str, *options: str) -> str:
    """The lone line that a build ends with; it leaves nothing behind."""
    before = sorted(os.listdir(folder))
    assert main(["build", str(folder / "refused.mph"), str(source), *options]) == 2
    out, error = capfd.readouterr()
    assert out == "" and error.startswith("mphfstore: ") and error.count("\n") == 1, error
    assert sorted(os.listdir(folder)) == before
    return error.removeprefix("mphfstore: ").removeprefix(f"{folder}/").rstrip("\n")


def contents(store: Any, keys: Any) -> dict[Any, Any]:
    assert len(store) == len(keys)
    return dict(zip(keys, store.get_many(list(keys)), strict=True))


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


# Parquet and Arrow


def write_parquet(path: Path, table: pa.Table) -> None:
    pa.parquet.write_table(table, path, row_group_size=3)


def write_ipc(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def write_stream(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


COLUMNAR = [("a.parquet", write_parquet), ("a.arrow", write_ipc), ("a.arrows", write_stream)]
columnar = pytest.mark.parametrize(("name", "write"), COLUMNAR)


@columnar
@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_columns_of_strings(name: str, write: Callable[..., None], kind: pa.DataType, tmp_path: Path) -> None:
    words = [f"ключ {i}" for i in range(10)]
    keys = pa.array(words).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(words).dictionary_encode()
    write(tmp_path / name, pa.table({"unused": range(10), "word": keys, "n": [b"%d" % i for i in range(10)]}))
    store = built(tmp_path, tmp_path / name, "--key-column", "word", "--value-column", "3")
    assert contents(store, words) == {word: b"%d" % i for i, word in enumerate(words)}


@columnar
def test_columns_of_numbers_keep_their_types(name: str, write: Callable[..., None], tmp_path: Path) -> None:
    keys, values = np.arange(-5, 5, dtype="i2"), np.linspace(0, 1, 10, dtype="f4")
    write(tmp_path / name, pa.table({"k": keys, "v": values}))
    store = built(tmp_path, tmp_path / name)
    assert (store.info()["key_type"], store.values_array().dtype) == ("<i2", np.dtype("f4"))
    assert store.get_many(keys).tolist() == values.tolist()
    wider = built(tmp_path, tmp_path / name, "--values", "f8", "--key-dtype", "i8")
    assert (wider.info()["key_type"], wider[-5]) == ("<i8", 0.0)


@columnar
def test_columns_of_structs_and_times(name: str, write: Callable[..., None], tmp_path: Path) -> None:
    points = pa.array([{"lat": i / 4, "n": i} for i in range(8)], pa.struct([("lat", pa.float32()), ("n", pa.uint8())]))
    write(tmp_path / name, pa.table({"k": list("abcdefgh"), "v": points}))
    store = built(tmp_path, tmp_path / name)
    assert store.values_array().dtype == np.dtype([("lat", "<f4"), ("n", "u1")])
    assert store["c"].item() == (0.5, 2)
    days = pa.array(np.arange(8).astype("M8[s]"))
    write(tmp_path / name, pa.table({"k": list("abcdefgh"), "v": days}))
    assert built(tmp_path, tmp_path / name)["h"] == np.datetime64(7, "s")


@columnar
@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"k": ["a", "b", "c", "d", None], "v": ["1"] * 5}, [], ": row 5: key is null"),
        ({"k": ["a", "b", "c", "d", "e"], "v": [1, 2, 3, None, 5]}, [], ": row 4: value is null"),
        ({"k": ["a", "b", "c", "d", "b"], "v": ["1"] * 5}, [],
         ": row 5: duplicate key b'b', first in row 2; --on-duplicate first or last keeps one of them"),
        ({"k": [1.5], "v": ["x"]}, [], ": keys are strings, binary or integers, not of dtype float64"),
        ({"k": ["a"], "v": [[1]]}, [], ": value of type list<item: int64> has no form in a store"),
        ({"k": ["a"], "v": [1]}, ["--value-column", "w"], ": no column 'w' among ['k', 'v']"),
        ({"k": ["a"]}, [], ": no column '2' among ['k']"),
        ({"k": ["a", "b"], "v": [7, 300]}, ["--values", "u1"], ": row 2: value 300 is outside uint8"),
        ({"k": ["a", "b"], "v": ["7", "x"]}, ["--values", "u1"], ": row 2: value 'x' is not an integer"),
    ],
)  # fmt: skip
def test_columns_that_are_refused(
    name: str, write: Callable[..., None], columns: dict[str, Any], options: list[str], message: str, tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    write(tmp_path / name, pa.table(columns))
    assert refused(tmp_path, capfd, tmp_path / name, *options).replace("element:", "item:") == name + message


@pytest.mark.parametrize("name", [name for name, _ in COLUMNAR])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1\0\0", b"key\tvalue\n" * 100])
def test_files_that_are_no_columns(
    name: str, content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    kind = "parquet" if name == "a.parquet" else "arrow"
    assert refused(tmp_path, capfd, tmp_path / name, "--format", kind).startswith(f"{name}: not ")


@columnar
def test_columns_that_are_damaged(
    name: str, write: Callable[..., None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / name, pa.table({"k": [f"{i:09}" for i in range(1000)], "v": range(1000)}))
    whole = (tmp_path / name).read_bytes()
    for size in range(0, len(whole), max(1, len(whole) // 20)):
        (tmp_path / name).write_bytes(whole[:size])
        if main(["build", str(tmp_path / "s"), str(tmp_path / name)]) != 2:
            assert name == "a.arrows", size  # a stream may end where a batch does
        assert capfd.readouterr().err.count("\n") <= 1


def test_an_arrow_stream_on_standard_input(tmp_path: Path) -> None:
    write_stream(tmp_path / "a", pa.table({"k": ["a", "b"], "v": [1, 2]}))
    command = [sys.executable, "-m", "mphfstore", "build", str(tmp_path / "s"), "-", "--format", "arrow"]
    subprocess.run(command, check=True, input=(tmp_path / "a").read_bytes())
    assert ms.open(tmp_path / "s")["b"] == 2


def test_without_pyarrow_there_is_a_way_to_get_it(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", pa.table({"k": ["a"], "v": ["b"]}))
    code = "import sys; sys.modules['pyarrow'] = None; from mphfstore._cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "build", str(tmp_path / "s"), str(tmp_path / "a.parquet")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'mphfstore[arrow]'" in done.stderr


# LMDB


def environment(path: Path, name: bytes | None, records: dict[bytes, bytes], **options: Any) -> Path:
    with lmdb.open(str(path), max_dbs=2, **options) as opened:
        database = opened.open_db(name)
        with opened.begin(write=True, db=database) as transaction:
            transaction.cursor().putmulti(list(records.items()))
    return path


SOME = {key: value for key, value in RECORDS.items() if key}


@pytest.mark.parametrize("subdir", [True, False])
def test_lmdb(subdir: bool, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = environment(tmp_path / "in" / "env", None, SOME, subdir=subdir)
    assert contents(built(tmp_path, path), SOME) == SOME
    for left in (tmp_path / "in").rglob("*lock*"):
        left.unlink()
    before = sorted((tmp_path / "in").rglob("*"))
    assert contents(built(tmp_path, path), SOME) == SOME
    assert sorted((tmp_path / "in").rglob("*")) == before, "reading leaves no lock file"


def test_a_named_database_of_lmdb(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = environment(tmp_path / "env", b"words", SOME)
    assert contents(built(tmp_path, path, "--table", "words"), SOME) == SOME
    message = "env: record 1: 'words' is a database, not a record: --table words reads it"
    assert refused(tmp_path, capfd, path) == message
    assert refused(tmp_path, capfd, path, "--table", "none").startswith("env: no database 'none'")


def test_values_of_48_bytes_are_no_databases(tmp_path: Path) -> None:
    records = {b"a": b"x" * 48, b"b": bytes(48)}
    assert contents(built(tmp_path, environment(tmp_path / "env", None, records)), records) == records


def test_repeated_keys_and_numbers_in_lmdb(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "env"
    with lmdb.open(str(path), max_dbs=1) as opened:
        database = opened.open_db(b"d", dupsort=True)
        with opened.begin(write=True, db=database) as transaction:
            for value in (b"1", b"2"):
                transaction.put(b"7", value)
    message = refused(tmp_path, capfd, path, "--table", "d")
    assert message.startswith("env: record 2: duplicate key b'7', first in record 1")
    store = built(tmp_path, path, "--table", "d", "--on-duplicate", "last", "--key-dtype", "u1", "--values", "u1")
    assert store[7] == 2
    assert refused(tmp_path, capfd, path, "--table", "d", "--header") == "--header is not for lmdb"


def test_files_that_are_no_lmdb(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, content in (("a.lmdb", b""), ("b.lmdb", b"x" * 100_000), ("c.lmdb", bytes(100_000))):
        (tmp_path / name).write_bytes(content)
        assert refused(tmp_path, capfd, tmp_path / name).startswith(f"{name}: no LMDB environment: ")
    (tmp_path / "d").mkdir()
    assert "d: " in refused(tmp_path, capfd, tmp_path / "d") + ": "
    assert refused(tmp_path, capfd, tmp_path / "none.lmdb") == "none.lmdb: No such file or directory"


# SQLite


def database(path: Path, *statements: str, rows: list[tuple[Any, ...]] | None = None) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        if "?" in statement:
            connection.executemany(statement, rows or [])
        else:
            connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_sqlite_texts_and_blobs(tmp_path: Path) -> None:
    rows: list[tuple[Any, ...]] = [("ключ", "значение"), (b"\xff\0", b"\0"), ("", ""), ("a", b"b")]
    path = database(tmp_path / "a.db", "CREATE TABLE t (k, v)", "INSERT INTO t VALUES (?, ?)", rows=rows)
    before = path.read_bytes()
    store = built(tmp_path, path)
    assert contents(store, [key for key, _ in rows]) == {
        "ключ": "значение".encode(), b"\xff\0": b"\0", "": b"", "a": b"b"
    }  # fmt: skip
    assert path.read_bytes() == before


def test_sqlite_numbers_views_and_columns(tmp_path: Path) -> None:
    path = database(
        tmp_path / "a",
        'CREATE TABLE "a ""table" (v REAL, id INTEGER)',
        'INSERT INTO "a ""table" VALUES (0.5, 7), (2, -8)',
        'CREATE VIEW w AS SELECT id, v * 2 AS twice FROM "a ""table"',
    )  # fmt: skip
    store = built(tmp_path, path, "--table", 'a "table', "--key-column", "id", "--value-column", "1")
    assert (store.info()["key_type"], store.values_array().dtype) == ("<i8", np.dtype("f8"))
    assert (store[7], store[-8]) == (0.5, 2.0)
    assert built(tmp_path, path, "--table", "w", "--value-column", "Twice", "--key-dtype", "i2")[-8] == 4.0


def test_sqlite_in_wal_mode_gets_no_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    statements = ("PRAGMA journal_mode = WAL", "CREATE TABLE t (k, v)", "INSERT INTO t VALUES ('a', 'b')")
    path = database(tmp_path / "in" / "a.db", *statements)
    assert built(tmp_path, path)["a"] == b"b"
    assert os.listdir(tmp_path / "in") == ["a.db"]
    writer = sqlite3.connect(path)
    writer.execute("INSERT INTO t VALUES ('c', 'd')")
    writer.commit()
    assert built(tmp_path, path)["c"] == b"d", "what is in the log only counts, too"
    writer.close()


@pytest.mark.parametrize(
    ("statements", "options", "message"),
    [
        (["CREATE TABLE t (k, v)", "INSERT INTO t VALUES ('a', 'b'), (NULL, 'c')"], [], "row 2: key is NULL"),
        (["CREATE TABLE t (k, v)", "INSERT INTO t VALUES ('a', 'b'), ('b', NULL)"], [], "row 2: value is NULL"),
        (["CREATE TABLE t (k, v)", "INSERT INTO t VALUES (1, 'b'), ('b', 'c')"], [],
         "row 2: key 'b' is not an integer"),
        (["CREATE TABLE t (k, v)", "INSERT INTO t VALUES ('b', 'c'), (1, 'b')"], [],
         "row 2: key 1 is not a string: --values and --key-dtype are for numbers"),
        (["CREATE TABLE t (k, v)", "INSERT INTO t VALUES ('b', 1), ('c', 2.5)"], [],
         "row 2: value 2.5 is not an integer"),
        (["CREATE TABLE t (k, v)", "INSERT INTO t VALUES ('b', 1), ('c', 2), ('b', 3)"], [],
         "row 3: duplicate key b'b', first in row 1; --on-duplicate first or last keeps one of them"),
        (["CREATE TABLE t (k, v)", "INSERT INTO t VALUES ('b', 1), ('c', 300)"], ["--values", "u1"],
         "row 2: value 300 is outside uint8"),
        (["CREATE TABLE t (k)"], [], "no column '2' among k"),
        (["CREATE TABLE t (k, v)"], ["--key-column", "word"], "no column 'word' among k, v"),
        (["CREATE TABLE t (k, v)"], ["--table", "u"], "no table 'u' among t"),
        (["CREATE TABLE t (k, v)", "CREATE TABLE u (k, v)"], [], "--table is one of t, u"),
        ([], [], "there is no table"),
    ],
)  # fmt: skip
def test_sqlite_that_is_refused(
    statements: list[str], options: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = database(tmp_path / "a.db", *statements)
    assert refused(tmp_path, capfd, path, *options) == f"a.db: {message}"


def test_sqlite_files_that_are_none_or_damaged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0" + bytes(2000))
    assert refused(tmp_path, capfd, tmp_path / "a.db").startswith("a.db: no SQLite database: ")
    (tmp_path / "b.db").write_bytes(b"key\tvalue\n")
    assert refused(tmp_path, capfd, tmp_path / "b.db").startswith("b.db: no SQLite database: ")
    assert refused(tmp_path, capfd, tmp_path / "none.db") == "none.db: No such file or directory"
    rows = [(f"key {i}", "x" * 100) for i in range(1000)]
    path = database(tmp_path / "c.db", "CREATE TABLE t (k, v)", "INSERT INTO t VALUES (?, ?)", rows=rows)
    whole = bytearray(path.read_bytes())
    for begin in range(10 * 4096, len(whole), 4096):
        whole[begin : begin + 100] = b"\xff" * 100
    path.write_bytes(whole)
    assert ": cannot be read: database disk image is malformed" in refused(tmp_path, capfd, path)


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
