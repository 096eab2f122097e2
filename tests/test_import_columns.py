"""Building from Parquet and Arrow files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from imports import built, contents, refused, write_ipc, write_parquet, write_stream

import mphfstore as ms
from mphfstore._cli import main
from mphfstore._columnar import ROWS, Columns

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


@columnar
def test_a_single_batch_comes_in_chunks(name: str, write: Callable[..., None], tmp_path: Path) -> None:
    table = pa.table({"k": np.arange(100_000), "v": [b"x"] * 100_000})
    if name == "a.parquet":
        pa.parquet.write_table(table, tmp_path / name)
    else:
        new = pa.ipc.new_file if name == "a.arrow" else pa.ipc.new_stream
        with new(str(tmp_path / name), table.schema) as writer:
            writer.write_table(table)
    with Columns(tmp_path / name, parquet=name == "a.parquet", value=True, names=("k", "v")) as columns:
        sizes = [len(chunk.values) for chunk in columns.chunks()]
    assert sum(sizes) == 100_000 and max(sizes) <= ROWS


@columnar
def test_strings_that_are_not_utf_8(
    name: str, write: Callable[..., None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / name, pa.table({"k": ["a", "b"], "v": pa.array([b"a", b"\xff"]).view(pa.string())}))
    error = refused(tmp_path, capfd, tmp_path / name)
    assert error.startswith(f"{name}: row 1: cannot be read: ") and "UTF8" in error


def test_an_arrow_file_of_offsets_that_point_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    offsets = pa.py_buffer(np.array([0, 1 << 30, 2], np.int32))
    wild = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"ab")])
    write_stream(tmp_path / "a.arrows", pa.table({"k": ["a", "b"], "v": wild}))
    assert refused(tmp_path, capfd, tmp_path / "a.arrows").startswith("a.arrows: row 1: cannot be read: ")


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
    assert done.returncode == 2 and "pip install pyarrow" in done.stderr
