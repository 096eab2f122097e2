"""What can be opened besides a path: file objects, resources of packages, buffers."""

from __future__ import annotations

import array
import bz2
import gzip
import importlib.resources
import io
import mmap
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import python

import mphfstore as ms

MODES = ["mmap", "pread", "ram"]
RECORDS = {f"key {i}": b"value %d" % i for i in range(300)}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "s.mph"
    ms.build(path, RECORDS, fingerprint_bits=32, seed=1)
    return path


def answers(source: Any, mode: str) -> None:
    store = ms.open(source, mode=mode)
    assert store.get_many([*RECORDS, "absent"], None) == [*RECORDS.values(), None]
    store.verify()
    assert store["key 7"] == RECORDS["key 7"]
    assert not store.stale() and not store.reload()


@pytest.mark.parametrize("mode", MODES)
def test_file_objects_count_from_their_beginning_and_keep_their_position(path: Path, mode: str) -> None:
    data = path.read_bytes()
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, "s")
    path.with_suffix(".gz").write_bytes(gzip.compress(data))
    path.with_suffix(".bz2").write_bytes(bz2.compress(data))
    with (
        open(path, "rb") as buffered, open(path, "rb", buffering=0) as raw, open(path, "r+b") as both,
        gzip.open(path.with_suffix(".gz")) as zipped, bz2.open(path.with_suffix(".bz2")) as bzipped,
        zipfile.ZipFile(path.with_suffix(".zip")) as archive, archive.open("s") as member,
        tempfile.TemporaryFile() as temporary, tempfile.NamedTemporaryFile() as named,
    ):  # fmt: skip
        temporary.write(data)  # some of it not written yet
        named.write(data)
        for file in buffered, raw, both, zipped, bzipped, member, temporary, named, io.BytesIO(data):
            file.seek(33)
            answers(file, mode)
            assert file.tell() == 33


def test_a_file_object_may_be_closed_and_its_file_removed(path: Path, tmp_path: Path) -> None:
    for mode in MODES:
        (tmp_path / "s").write_bytes(path.read_bytes())
        with open(tmp_path / "s", "rb") as file:
            store = ms.open(file, mode=mode)
        os.unlink(tmp_path / "s")
        assert store.get_many(RECORDS) == list(RECORDS.values())
        assert store.info()["path"] is None and store.info()["mode"] == mode


def test_a_stream_that_cannot_seek_is_read(path: Path) -> None:
    class Stream:
        def __init__(self, content: bytes) -> None:
            self._rest = io.BytesIO(content)

        def seekable(self) -> bool:
            return False

        def read(self) -> bytes:
            return self._rest.read()

    for mode in MODES:
        answers(Stream(path.read_bytes()), mode)


@pytest.mark.parametrize("mode", MODES)
def test_buffers_of_every_kind(path: Path, mode: str) -> None:
    data = path.read_bytes()
    numbers = np.frombuffer(data + bytes(-len(data) % 8), np.uint8)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        sources: list[Any] = [
            data, bytearray(data), memoryview(data), memoryview(b"123" + data)[3:], np.frombuffer(data, np.uint8),
            np.repeat(np.frombuffer(data, np.uint8), 2)[::2], array.array("B", data), io.BytesIO(data).getbuffer(),
            np.memmap(path, np.uint8, "r"), numbers[: len(data)],
        ]  # fmt: skip
        for source in sources:
            answers(source, mode)
        store = ms.open(mapped, mode=mode)
        assert store["key 7"] == RECORDS["key 7"]
        del store  # else the mapping could not be closed


def test_ram_is_a_copy_of_a_buffer(path: Path) -> None:
    data = bytearray(path.read_bytes())
    store = ms.open(data, mode="ram")
    data[:] = bytes(len(data))
    assert store.get_many(RECORDS) == list(RECORDS.values())


@pytest.mark.parametrize("mode", MODES)
def test_resources_of_packages_in_directories_and_in_zip_files(path: Path, tmp_path: Path, mode: str) -> None:
    (tmp_path / "citylist").mkdir()
    (tmp_path / "citylist/__init__.py").write_text("")
    (tmp_path / "citylist/s.mph").write_bytes(path.read_bytes())
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        for name in "__init__.py", "s.mph":
            archive.write(tmp_path / "citylist" / name, f"zippedlist/{name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        patch.syspath_prepend(tmp_path / "p.zip")
        for package in "citylist", "zippedlist":
            answers(importlib.resources.files(package).joinpath("s.mph"), mode)
            sys.modules.pop(package)


def test_what_is_no_file_is_refused(path: Path, tmp_path: Path) -> None:
    with open(path, encoding="latin-1") as text:
        for source in text, io.StringIO("x"):
            with pytest.raises(TypeError, match="binary"):
                ms.open(source)
    for wrong in 5, None, object(), ["s"], {}:
        with pytest.raises(TypeError, match="path"):
            ms.open(wrong)
    closed = open(path, "rb")  # noqa: SIM115
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        ms.open(closed)
    for mode in MODES:
        (tmp_path / "empty").write_bytes(b"")
        (tmp_path / "short").write_bytes(path.read_bytes()[:100])
        (tmp_path / "cut").write_bytes(path.read_bytes()[:-1])
        for name in "empty", "short", "cut":
            with pytest.raises(ms.FormatError, match=r"empty|truncated"):
                ms.open(tmp_path / name, mode=mode)
            with open(tmp_path / name, "rb") as file, pytest.raises(ms.FormatError, match=r"empty|truncated"):
                ms.open(file, mode=mode)
        with pytest.raises(OSError):
            ms.open(tmp_path, mode=mode)
        with pytest.raises(FileNotFoundError):
            ms.open(tmp_path / "missing", mode=mode)
    with pytest.raises(ms.FormatError, match="empty"):
        ms.open(b"")


DESCRIPTORS = """
import gc, os, sys, mphfstore as ms
path = sys.argv[1]
def descriptors():
    gc.collect()
    return sorted(os.listdir("/proc/self/fd"))
before = descriptors()
for mode in "mmap", "pread", "ram":
    for _ in range(20):
        with ms.open(path, mode=mode) as store, open(path, "rb") as file, ms.open(file, mode=mode) as other:
            assert store["key 7"] == other["key 7"]
        try:
            ms.open(sys.argv[0] or sys.executable, mode=mode)
        except (ms.FormatError, OSError):
            pass
    del store, other
assert descriptors() == before
assert path not in open("/proc/self/maps").read()
store = ms.open(path, mode="pread")
assert path not in open("/proc/self/maps").read()
new = set(descriptors()) - set(before)
assert [name for name in new if os.path.exists(f"/proc/self/fd/{name}") and os.get_inheritable(int(name))] == []
"""


def test_nothing_is_left_open_or_inherited(path: Path) -> None:
    done = python(DESCRIPTORS, path)
    assert done.returncode == 0, done.stderr
