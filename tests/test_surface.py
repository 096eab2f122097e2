"""The public names, their docstrings, the tree of errors; handles under threads and forks."""

from __future__ import annotations

import inspect
import multiprocessing
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import mphfstore as ms


def test_exported_names_exist_and_are_documented() -> None:
    for name in ms.__all__:
        exported = getattr(ms, name)
        assert name == "PRESETS" or inspect.getdoc(exported), name
        for member, function in inspect.getmembers(exported, inspect.isfunction):
            assert member.startswith("_") or inspect.getdoc(function), f"{name}.{member}"


def test_errors_form_one_tree() -> None:
    errors = [getattr(ms, name) for name in ms.__all__ if name.endswith("Error")]
    assert len(errors) == 8
    assert all(issubclass(error, ms.Error) for error in errors)
    assert issubclass(ms.FormatVersionError, ms.FormatError) and issubclass(ms.ChecksumError, ms.FormatError)
    again = pickle.loads(pickle.dumps(ms.DuplicateKeyError(b"k", (1, 2))))
    assert (again.key, again.positions) == (b"k", (1, 2))


@pytest.mark.parametrize("preset", list(ms.PRESETS))
def test_every_preset_builds(preset: str) -> None:
    keys = np.arange(3000)
    function = ms.MPHF.build(keys, preset=preset, seed=1)
    assert np.array_equal(np.sort(function.index_many(keys)), np.arange(3000))


def test_look_ups_from_threads_while_the_handle_closes(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {f"k{i}": b"%d" % i for i in range(5000)})
    keys, wrong = [f"k{i}" for i in range(5000)], []

    def look_up(store: ms.Store) -> None:
        try:
            for _ in range(50):
                if store.get_many(keys)[17] != b"17" or store["k4"] != b"4":
                    wrong.append("value")
        except ValueError:
            pass  # closed
        except BaseException as error:
            wrong.append(repr(error))

    for _ in range(5):
        store = ms.open(tmp_path / "s")
        threads = [threading.Thread(target=look_up, args=(store,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        store.close()
        for thread in threads:
            thread.join()
        with pytest.raises(ValueError, match="closed"):
            store["k1"]
    assert wrong == []


def _value(store: ms.Store, key: str, results: object) -> None:
    results.put(store[key])  # type: ignore[attr-defined]


def test_a_handle_works_in_a_forked_child(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {"a": b"1"})
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_value, args=(ms.open(tmp_path / "s"), "a", results))
    child.start()
    assert results.get(timeout=30) == b"1"
    child.join()


def test_progress_grows_to_the_total() -> None:
    seen: list[tuple[int, int]] = []
    ms.MPHF.build(np.arange(100_000), progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 100_000) and seen[-1] == (100_000, 100_000) and len(seen) > 3
    assert seen == sorted(seen)


def test_every_public_name_is_exported_and_only_those() -> None:
    public = {name for name, item in vars(ms).items() if not name.startswith("_") and not inspect.ismodule(item)}
    assert public - {"annotations"} == set(ms.__all__)
    assert len(ms.__all__) == len(set(ms.__all__))


def test_public_properties_and_the_package_are_documented() -> None:
    assert inspect.getdoc(ms)
    for name in ms.__all__:
        for member, item in vars(getattr(ms, name)).items() if inspect.isclass(getattr(ms, name)) else ():
            if isinstance(item, property | classmethod | staticmethod) and not member.startswith("_"):
                assert inspect.getdoc(getattr(getattr(ms, name), member)), f"{name}.{member}"


def test_an_absent_key_is_a_plain_key_error_and_no_error_of_ours() -> None:
    assert not issubclass(KeyError, ms.Error)
    for error, builtin in (
        (ms.DuplicateKeyError, ValueError),
        (ms.FormatError, ValueError),
        (ms.BuildError, RuntimeError),
    ):
        assert issubclass(error, builtin)
