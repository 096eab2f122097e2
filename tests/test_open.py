"""Opening a file by every kind of source, and what it says of itself."""

from __future__ import annotations

import io
import mmap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, names_in

import mphfstore
from mphfstore import Store

Make = Callable[..., Store]


def test_info_says_what_the_file_is(store: Store) -> None:
    info = store.info()
    assert info["path"].endswith("records.mph")
    assert (info["kind"], info["keys"], info["key_type"], info["values"]) == ("store", 1000, "bytes", "bytes")
    assert (info["fingerprint_bits"], info["seed"], info["metadata"]) == (32, 1, {"of": "tests"})
    preset = mphfstore.PRESETS["balanced"]
    assert (info["method"], info["leaf_size"], info["bucket_size"]) == (
        preset.method, preset.leaf_size, preset.bucket_size,
    )  # fmt: skip
    assert info["file_size"] == Path(info["path"]).stat().st_size == len(store.to_bytes())
    assert info["sections"]["blob"] == sum(map(len, RECORDS.values()))
    assert info["bits_per_key"] == store.bits_per_key
    assert info["bits_per_key"] == 8 * (info["sections"]["trees"] + info["sections"]["directory"]) / 1000


@pytest.mark.parametrize("metadata", [{"x": [1, 2.5, None, "ü"]}, [], 0, "", False])
def test_metadata_comes_back(make: Make, metadata: Any) -> None:
    assert make({"a": b"1"}, metadata=metadata).info()["metadata"] == metadata


@pytest.mark.parametrize("metadata", [object(), float("nan"), b"bytes", "\ud800"])
def test_metadata_that_json_cannot_hold_is_refused(tmp_path: Path, metadata: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        mphfstore.build(tmp_path / "s", {"a": b"1"}, metadata=metadata)
    assert names_in(tmp_path) == []


def test_a_file_opens_by_path_pathlike_and_from_any_buffer(store: Store, tmp_path: Path) -> None:
    path, data = Path(store.info()["path"]), store.to_bytes()
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.write(path, "s")
    with zipfile.ZipFile(tmp_path / "z.zip") as archive:
        zipped = archive.read("s")
    anonymous = mmap.mmap(-1, len(data))
    anonymous[:] = data
    shifted = memoryview(b"123" + data)[3:]
    numbers = np.frombuffer(data, np.uint8)
    for source in (
        str(path), path, data, bytearray(data), memoryview(data), shifted, numbers, np.repeat(numbers, 2)[::2], zipped,
        anonymous, io.BytesIO(data).getbuffer(),
    ):  # fmt: skip
        opened = mphfstore.open(source)
        assert opened.get_many(RECORDS) == list(RECORDS.values())


def test_open_gives_the_class_the_file_names(tmp_path: Path) -> None:
    mphfstore.Filter.build(["a", "b"]).save(tmp_path / "f")
    mphfstore.MPHF.build(["a", "b"]).save(tmp_path / "m")
    mphfstore.build(tmp_path / "s", {"a": b"1"})
    for name, kind in (("f", mphfstore.Filter), ("m", mphfstore.MPHF), ("s", Store)):
        assert type(mphfstore.open(tmp_path / name)) is kind
        for other in {mphfstore.Filter, mphfstore.MPHF, Store} - {kind}:
            with pytest.raises(mphfstore.FormatError, match="expected a"):
                other.from_bytes((tmp_path / name).read_bytes())
            with pytest.raises(mphfstore.FormatError, match="expected a"):
                other.open(tmp_path / name)
        assert type(kind.open(tmp_path / name, mode="ram", verify=True)) is kind


def test_opening_writes_nothing(store: Store, tmp_path: Path) -> None:
    store.save(tmp_path / "s")
    (tmp_path / "s").chmod(0o444)
    before = (tmp_path / "s").stat()
    assert mphfstore.open(tmp_path / "s")["key 1"] == RECORDS["key 1"]
    after = (tmp_path / "s").stat()
    assert (before.st_mtime_ns, before.st_mode) == (after.st_mtime_ns, after.st_mode)
    assert names_in(tmp_path) == ["s"]


def test_a_missing_file_and_an_unknown_mode_are_refused(tmp_path: Path, store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        mphfstore.open(tmp_path / "missing")
    with pytest.raises(OSError):
        mphfstore.open(tmp_path)
    with pytest.raises(ValueError, match="mode"):
        mphfstore.open(store.info()["path"], mode="telepathy")
    with pytest.raises(TypeError):
        mphfstore.open(5)


def test_integers_the_dtype_does_not_have_are_absent_everywhere(make: Make) -> None:
    store = make([(1, b"1"), (200, b"2")], key_dtype="u1")
    assert 300 not in store and store.get(-1) is None
    for keys in ([1, 300, -1], np.array([1, 300, -1])):
        assert store.contains_many(keys).tolist() == [True, False, False]
        assert store.get_many(keys, None) == [b"1", None, None]
        with pytest.raises(KeyError, match="300"):
            store.get_many(keys)


def test_a_default_that_does_not_fit_is_refused(make: Make) -> None:
    store = make((["a"], np.array([7], "u4")), values="u4", fingerprint_bits=32)
    assert store.get_many(["a", "x"], 9).tolist() == [7, 9]
    for default in (1.5, None, "1"):
        with pytest.raises(TypeError):
            store.get_many(["x"], default)
    with pytest.raises(OverflowError):
        store.get_many(["x"], -1)
