"""Building from LMDB environments and SQLite tables."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest
from imports import RECORDS, built, contents, database, environment, refused

# LMDB


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
