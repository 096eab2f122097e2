"""What tests of importing share: files of every format, building from them by the command, and how it refuses."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import lmdb
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import mphfstore as ms
from mphfstore._cli import main

RECORDS = {b"one": b"1", b"two": b"2\ttwo\n", b"\xff\xfe": b"", b"": b"empty key", b"nul\0": b"\0\xff"}


# keys and values that mean something to one format or another
HOSTILE = {
    b"": b"", b"\0": b"\0\0", b"a\tb": b"c\td", b"a\nb": b"\n", b"a\r": b"\r", b"\xff\xfe": b"\xff", b'"': b'""',
    b",": b",,", b"\\t": b"\\\\", b"\xef\xbb\xbf": b"\xef\xbb\xbf", b"+1,1:a->b": b"\n\n",
    b'{"base64": "AA=="}': b'{"base64": "AA=="}',
    "ключ".encode(): "значение".encode(), b" a ": b" ", b"NULL": b"null", b"12": b"1e5", b"\r\n": b"\r\n", b"#": b"'",
    b"long" * 100: b"x" * 100_000,
}  # fmt: skip


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


def write_parquet(path: Path, table: pa.Table) -> None:
    pa.parquet.write_table(table, path, row_group_size=3)


def write_ipc(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def write_stream(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def environment(path: Path, name: bytes | None, records: dict[bytes, bytes], **options: Any) -> Path:
    with lmdb.open(str(path), max_dbs=2, **options) as opened:
        database = opened.open_db(name)
        with opened.begin(write=True, db=database) as transaction:
            transaction.cursor().putmulti(list(records.items()))
    return path


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
