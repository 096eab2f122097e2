"""Handles: views and closing, copies and pickles, stale and reload."""

from __future__ import annotations

import copy
import gc
import itertools
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import python

import mphfstore as ms
from mphfstore import _handle

MODES = ["mmap", "pread", "ram"]
COLUMNS: dict[str, tuple[Any, Any]] = {
    "bytes": ("bytes", [b"1", b"22", b""]),
    "bytes of one width": ("bytes", [b"11", b"22", b"33"]),
    "nothing but empty bytes": ("bytes", [b"", b"", b""]),
}


def published(path: Path, generation: int, count: int = 50) -> None:
    ms.build(path, {f"k{i}": b"%d of %d" % (i, generation) for i in range(count)}, fingerprint_bits=32)


# --- views ---


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_view_shows_a_value(tmp_path: Path, mode: str, column: str) -> None:
    kind, values = COLUMNS[column]
    ms.build(tmp_path / "s", (["a", "b", "c"], values), values=kind, fingerprint_bits=32)
    store = ms.open(tmp_path / "s", mode=mode)
    for key, value in zip("abc", values, strict=True):
        view = store.get_view(key)
        assert view == value and view.readonly and view.format == "B" and view.contiguous
    with pytest.raises(KeyError, match="absent"):
        store.get_view("absent")
    with pytest.raises(TypeError):
        store.get_view(5)


def test_a_view_is_no_copy(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {"a": bytes(range(200)) * 50, "b": b""})
    data = (tmp_path / "s").read_bytes()
    for store in ms.open(data), ms.open(tmp_path / "s"):
        one, two = (np.frombuffer(store.get_view("a"), np.uint8).ctypes.data for _ in range(2))
        assert one == two
    whole = np.frombuffer(data, np.uint8).ctypes.data
    inside = np.frombuffer(ms.open(data).get_view("a"), np.uint8).ctypes.data
    assert whole < inside < whole + len(data)


def test_views_of_other_values_are_refused(tmp_path: Path) -> None:
    for values in "u4", None:
        ms.build(tmp_path / "s", ["a"] if values is None else (["a"], [1]), values=values)
        for mode in MODES:
            with pytest.raises(TypeError, match="not bytes"):
                ms.open(tmp_path / "s", mode=mode).get_view("a")


LENT: dict[str, Callable[[Any], Any]] = {
    "view": lambda store: store.get_view("a"),
    "slice": lambda store: store.get_view("a")[1:],
    "memoryview of it": lambda store: memoryview(store.get_view("a")),
    "array of it": lambda store: np.frombuffer(store.get_view("a"), np.uint8)[::2],
}


@pytest.mark.parametrize("mode", ["mmap", "ram", "buffer"])
@pytest.mark.parametrize("lent", LENT)
def test_close_refuses_while_there_are_views_as_mmap_does(tmp_path: Path, mode: str, lent: str) -> None:
    ms.build(tmp_path / "s", {"a": b"1234"})
    store = ms.open((tmp_path / "s").read_bytes()) if mode == "buffer" else ms.open(tmp_path / "s", mode=mode)
    view, other = LENT[lent](store), store.get_view("a")
    expected = bytes(view)
    with pytest.raises(BufferError, match="2 views"):
        store.close()
    assert store["a"] == b"1234" and bytes(view) == expected
    other.release()
    del other
    with pytest.raises(BufferError, match="1 view"):
        store.close()
    del view
    gc.collect()
    store.close()
    with pytest.raises(ValueError, match="closed"):
        store["a"]


@pytest.mark.parametrize("mode", ["mmap", "ram"])
def test_arrays_are_views_and_records_taken_from_them_too(tmp_path: Path, mode: str) -> None:
    ms.build(tmp_path / "s", (["a", "b"], [(1, 2), (3, 4)]), values=[("x", "i4"), ("y", "i4")])
    store = ms.open(tmp_path / "s", mode=mode)
    for take in (lambda array: array, lambda array: array[:1], lambda array: array["y"], lambda array: array[0]):
        taken = take(store.values_array())
        with pytest.raises(BufferError):
            store.close()
        del taken
    assert not store.values_array().flags.writeable
    store.close()


def test_what_was_copied_is_no_view(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {"a": b"1234"})
    ms.build(tmp_path / "n", (["a", "b"], [1, 2]), values="u4")
    for mode in MODES:
        store, numbers = ms.open(tmp_path / "s", mode=mode), ms.open(tmp_path / "n", mode=mode)
        kept = [store["a"], store.get_many(["a"]), numbers["a"], numbers.get_many(["a", "b"])]
        if mode == "pread":
            kept += [store.get_view("a"), numbers.values_array()]
        store.close()
        numbers.close()
        assert kept[:2] == [b"1234", [b"1234"]]


LEAVING = """
import gc, os, sys, mphfstore as ms
path, mode = sys.argv[1:]
with ms.open(path, mode=mode) as store:
    view = store.get_view("a")
del store
os.unlink(path)
gc.collect()
assert view == b"1234" * 5000 and (path in open("/proc/self/maps").read()) == (mode == "mmap")
del view
gc.collect()
assert path not in open("/proc/self/maps").read()
"""


@pytest.mark.parametrize("mode", MODES)
def test_leaving_a_with_block_leaves_views_valid(tmp_path: Path, mode: str) -> None:
    ms.build(tmp_path / "s", {"a": b"1234" * 5000})
    done = python(LEAVING, tmp_path / "s", mode)
    assert done.returncode == 0, done.stderr


# --- copies and pickles ---


def pickled(handle: Any) -> Any:
    return pickle.loads(pickle.dumps(handle))


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickled}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", COPIES)
def test_a_copy_answers_and_is_closed_on_its_own(tmp_path: Path, mode: str, how: str) -> None:
    published(tmp_path / "s", 1)
    for source in tmp_path / "s", (tmp_path / "s").read_bytes():
        store = ms.open(source, mode=mode)
        other = COPIES[how](store)
        store.close()
        assert type(other) is ms.Store and other["k7"] == b"7 of 1" and len(other) == 50
        if not isinstance(source, bytes):
            assert other.info()["mode"] == mode and other.info()["path"] == str(source)
        other.close()
        with pytest.raises(ValueError, match="closed"):
            other["k7"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_a_path_whatever_the_protocol(tmp_path: Path, protocol: int) -> None:
    published(tmp_path / "s", 1, 5000)
    store = ms.open(tmp_path / "s")
    data = pickle.dumps(store, protocol)
    assert len(data) < 500 and pickle.loads(data)["k7"] == b"7 of 1"
    store.save(tmp_path / "f")
    for handle in ms.Filter.build(["a"]), ms.MPHF.build(["a"]):
        handle.save(tmp_path / "f")
        for one in handle, ms.open(tmp_path / "f"):
            assert type(pickle.loads(pickle.dumps(one, protocol))) is type(handle)
            assert pickle.loads(pickle.dumps(one, protocol)).to_bytes() == handle.to_bytes()


def test_a_pickle_of_a_relative_path_opens_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(tmp_path / "s", 1)
    monkeypatch.chdir(tmp_path)
    store = ms.open("s")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickled(store)["k7"] == b"7 of 1" and not store.stale()


def test_a_pickle_knows_its_file(tmp_path: Path) -> None:
    published(tmp_path / "s", 1)
    for mode in MODES:
        store = ms.open(tmp_path / "s", mode=mode)
        data = pickle.dumps(store)
        content = (tmp_path / "s").read_bytes()
        (tmp_path / "s").unlink()
        with pytest.raises(FileNotFoundError):
            pickle.loads(data)
        (tmp_path / "s").write_bytes(content)  # another inode, the same bytes: the same answers
        assert pickle.loads(data)["k7"] == b"7 of 1"
        published(tmp_path / "s", 2)
        with pytest.raises(ms.StaleError, match=r"another file now .* mphfstore\.open"):
            pickle.loads(data)
        ms.Filter.build(["a"]).save(tmp_path / "s")
        with pytest.raises(ms.StaleError):
            pickle.loads(data)
        (tmp_path / "s").write_bytes(b"something else")
        with pytest.raises(ms.FormatError, match="not a file of mphfstore"):
            pickle.loads(data)
        published(tmp_path / "s", 1)


def test_a_closed_handle_is_not_pickled(tmp_path: Path) -> None:
    published(tmp_path / "s", 1)
    store = ms.open(tmp_path / "s")
    store.close()
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(store)
    assert "closed" in repr(copy.deepcopy(store))


class Folded(ms.Store):
    """A class of the user's own."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key.lower())


def test_a_class_of_the_users_own_stays_what_it_is(tmp_path: Path) -> None:
    published(tmp_path / "s", 1)
    store = Folded.from_bytes((tmp_path / "s").read_bytes())
    assert all(type(made := how(store)) is Folded and made["K7"] == b"7 of 1" for how in COPIES.values())


def _answers(store: ms.Store) -> tuple[int, list[bytes], bytes]:
    return os.getpid(), store.get_many(["k1", "k2"]), store["k3"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_handles_work_in_other_processes(tmp_path: Path, method: str) -> None:
    published(tmp_path / "s", 1)
    stores = [ms.open(tmp_path / "s", mode=mode) for mode in MODES] + [ms.open((tmp_path / "s").read_bytes())]
    with multiprocessing.get_context(method).Pool(2) as pool:
        for pid, many, one in pool.map(_answers, stores):
            assert pid != os.getpid() and many == [b"1 of 1", b"2 of 1"] and one == b"3 of 1"


def _inherited(store: ms.Store, results: Any) -> None:
    results.put((_answers(store)[1:], store.stale(), store.reload()))


@pytest.mark.parametrize("mode", MODES)
def test_handles_work_and_reload_in_forked_children(tmp_path: Path, mode: str) -> None:
    published(tmp_path / "s", 1)
    store, context = ms.open(tmp_path / "s", mode=mode), multiprocessing.get_context("fork")
    results = context.Queue()
    for change in False, True:
        if change:
            published(tmp_path / "s", 2)
        child = context.Process(target=_inherited, args=(store, results))
        child.start()
        assert results.get(timeout=30) == (([b"1 of 1", b"2 of 1"], b"3 of 1"), change, change)
        child.join()
    assert store["k1"] == b"1 of 1"  # a child's reload is its own


# --- stale and reload ---


@pytest.mark.parametrize("mode", MODES)
def test_reload_goes_over_to_what_was_published(tmp_path: Path, mode: str) -> None:
    published(tmp_path / "s", 1)
    store = ms.open(tmp_path / "s", mode=mode)
    other = copy.copy(store)
    assert not store.stale() and not store.reload()
    view = store.get_view("k7")
    published(tmp_path / "s", 2, count=60)
    assert store.stale() and store["k7"] == b"7 of 1" and len(store) == 50
    assert store.reload() and not store.stale()
    assert store["k7"] == b"7 of 2" and len(store) == 60 and view == b"7 of 1" and store.info()["mode"] == mode
    assert other["k7"] == b"7 of 1" and other.stale() and other.reload() and other["k7"] == b"7 of 2"
    store.close()  # the view is into the file before


def test_the_keys_may_be_of_another_type_after_a_reload(tmp_path: Path) -> None:
    published(tmp_path / "s", 1)
    store = ms.open(tmp_path / "s")
    ms.build(tmp_path / "s", (np.arange(9), np.arange(9)), values="i8")
    assert store.reload() and store[5] == 5 and store.get_many([1, 2]).tolist() == [1, 2]
    assert store.values_array().sum() == 36


@pytest.mark.parametrize("mode", MODES)
def test_a_handle_survives_a_reload_that_fails(tmp_path: Path, mode: str) -> None:
    published(tmp_path / "s", 1)
    store = ms.open(tmp_path / "s", mode=mode)
    (tmp_path / "s").rename(tmp_path / "t")
    assert store.stale()
    with pytest.raises(FileNotFoundError):
        store.reload()
    ms.Filter.build(["a"]).save(tmp_path / "s")
    with pytest.raises(ms.FormatError, match="expected a store, got a filter"):
        store.reload()
    (tmp_path / "s").write_bytes((tmp_path / "t").read_bytes()[:-1])
    with pytest.raises(ms.FormatError, match="truncated"):
        store.reload()
    assert store.stale() and store["k7"] == b"7 of 1"
    (tmp_path / "t").rename(tmp_path / "s")
    assert not store.stale() and not store.reload()


def test_a_file_that_was_touched_or_rewritten_in_place_is_another_one(tmp_path: Path) -> None:
    published(tmp_path / "s", 1)
    store = ms.open(tmp_path / "s", mode="ram")
    os.utime(tmp_path / "s", ns=(0, 0))
    assert store.stale() and store.reload() and not store.stale()


def test_an_inode_that_is_used_again_is_no_disguise(tmp_path: Path) -> None:
    """File systems give a new file the inode of one just removed, and clocks of files tick slowly."""
    published(tmp_path / "s", 1)
    status = (tmp_path / "s").stat()
    for mode in MODES:
        store = ms.open(tmp_path / "s", mode=mode)
        for generation in itertools.count(2):
            published(tmp_path / "s", generation)
            os.utime(tmp_path / "s", ns=(status.st_mtime_ns, status.st_mtime_ns))
            assert store.stale()
            if generation == 12:
                break
        published(tmp_path / "s", 1)
        os.utime(tmp_path / "s", ns=(status.st_mtime_ns, status.st_mtime_ns))


def test_closed_while_it_reloads_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(tmp_path / "s", 1)
    store = ms.open(tmp_path / "s")
    published(tmp_path / "s", 2)
    opening = ms.Store._opening

    def closing(self: ms.Store, *source: Any) -> Any:
        self.close()
        return opening(self, *source)

    monkeypatch.setattr(ms.Store, "_opening", closing)
    store.reload()
    with pytest.raises(ValueError, match="closed"):
        store["k7"]


def test_a_child_forked_during_a_reload_may_reload(tmp_path: Path) -> None:
    published(tmp_path / "s", 1)
    store = ms.open(tmp_path / "s")
    published(tmp_path / "s", 2)
    with _handle._reloading:  # as by a thread that the child does not have
        child = os.fork()
        if not child:
            signal.alarm(20)
            os._exit(0 if store.reload() and store["k7"] == b"7 of 2" else 1)
    assert os.waitpid(child, 0)[1] == 0 and store["k7"] == b"7 of 1"


@pytest.mark.parametrize("mode", MODES)
def test_threads_see_one_generation_at_a_time_and_never_an_older_one(tmp_path: Path, mode: str) -> None:
    published(tmp_path / "s", 0)
    store, keys, wrong, done = ms.open(tmp_path / "s", mode=mode), [f"k{i}" for i in range(50)], [], threading.Event()

    def read() -> None:
        seen = 0
        try:
            while not done.is_set():
                store.reload()
                generations = {int(value.split()[2]) for value in store.get_many(keys)}
                single = int(store["k7"].split()[2])
                view = int(bytes(store.get_view("k7")).split()[2])
                if len(generations) != 1 or not seen <= min(generations) <= single <= view:
                    wrong.append((seen, generations, single, view))
                seen = view
        except BaseException as error:
            wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for generation in range(1, 60):
        published(tmp_path / "s", generation)
    done.set()
    for reader in readers:
        reader.join()
    store.reload()
    assert wrong == [] and store["k7"] == b"7 of 59"
