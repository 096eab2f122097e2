"""An overlay is a dict that lies in files: against a model, key by key, kind by kind, and where it refuses."""

from __future__ import annotations

import contextlib
import pickle
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import mphfstore as ms
from mphfstore import _overlay_state

KEYS = st.one_of(
    st.sampled_from([b"", b"\0", b"a", b"b", b"\0a", b"x" * 510, b"x" * 511, b"x" * 512, b"y" * 5000]),
    st.binary(max_size=2),
)
ITEMS = st.dictionaries(KEYS, st.binary(max_size=4), max_size=8)


class Model(RuleBasedStateMachine):
    """Whatever is done to an overlay, it has the items of a dict to which the same was done."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model: dict[bytes, bytes] = {}
        self.snapshots: list[tuple[ms.Snapshot, dict[bytes, bytes]]] = []

    def open(self) -> None:
        self.overlay = ms.Overlay(self.folder / "base", self.folder / "overlay", durable=False, map_size=1 << 17)

    @initialize(items=ITEMS, exists=st.booleans())
    def begin(self, items: dict[bytes, bytes], exists: bool) -> None:
        if exists:
            ms.build(self.folder / "base", items, keys="exact", seed=1)
            self.model = dict(items)
        self.open()

    @rule(key=KEYS, value=st.binary(max_size=4))
    def put(self, key: bytes, value: bytes) -> None:
        self.overlay[key] = self.model[key] = value

    @rule(key=KEYS)
    def delete(self, key: bytes) -> None:
        if self.model.pop(key, None) is not None:
            del self.overlay[key]
        else:
            with pytest.raises(KeyError):
                del self.overlay[key]

    @rule(items=ITEMS)
    def update(self, items: dict[bytes, bytes]) -> None:
        self.overlay.update(items)
        self.model.update(items)

    @rule(items=ITEMS, gone=KEYS, fails=st.booleans())
    def batch(self, items: dict[bytes, bytes], gone: bytes, fails: bool) -> None:
        model = dict(self.model)
        with contextlib.suppress(ZeroDivisionError), self.overlay.batch():
            for key, value in items.items():
                self.overlay[key] = model[key] = value
            assert self.overlay.pop(gone, None) == model.pop(gone, None)
            assert all(self.overlay[key] == value for key, value in model.items())
            assert gone not in self.overlay
            if fails:
                raise ZeroDivisionError
        if not fails:
            self.model = model

    @rule(size=st.integers(20_000, 200_000))
    def outgrow_the_map(self, size: int) -> None:
        self.overlay[b"large"] = self.model[b"large"] = bytes(size)

    @rule()
    def clear(self) -> None:
        self.overlay.clear()
        self.model.clear()

    @rule()
    def compact(self) -> None:
        self.overlay.compact(seed=1)
        assert self.overlay.info()["entries"] == 0
        store = ms.open(self.folder / "base")
        assert isinstance(store, ms.Store) and len(store) == len(self.model)

    @rule()
    def reopen(self) -> None:
        self.overlay.close()
        self.open()

    @rule()
    def snapshot(self) -> None:
        self.snapshots.append((self.overlay.snapshot(), dict(self.model)))

    @invariant()
    def same_items(self) -> None:
        if not hasattr(self, "overlay"):
            return
        for mapping, model in [(self.overlay, self.model), *self.snapshots[-3:]]:
            assert {_bytes(key): value for key, value in mapping.items()} == model
            assert {_bytes(key) for key in mapping} == set(model) and len(mapping) == len(model)
            for key in [*model, b"a", b"", b"absent", b"x" * 512]:
                assert mapping.get(key) == model.get(key) and (key in mapping) == (key in model)

    def teardown(self) -> None:
        for snapshot, _ in self.snapshots:
            snapshot.close()
        if hasattr(self, "overlay"):
            self.overlay.close()
        shutil.rmtree(self.folder)


def _bytes(key: Any) -> Any:
    return key.encode() if isinstance(key, str) else key


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[ms.Overlay]:
    with ms.Overlay(tmp_path / "base", tmp_path / "overlay") as opened:
        yield opened


def beside(overlay: ms.Overlay, **options: Any) -> ms.Overlay:
    return ms.Overlay(overlay.info()["base"], overlay.info()["lmdb"], **options)


def test_str_and_bytes_are_the_same_key_and_str_comes_back(overlay: ms.Overlay) -> None:
    overlay["é"] = b"1"
    assert overlay["é".encode()] == overlay[bytearray("é".encode())] == b"1" and "é" in overlay
    assert list(overlay) == ["é"]
    overlay.compact()
    assert list(overlay) == ["é"]
    overlay[b"\xff"] = b"2"
    assert set(overlay) == {"é".encode(), b"\xff"}
    overlay.compact()
    assert set(overlay) == {"é".encode(), b"\xff"} and overlay["é"] == b"1"


@pytest.mark.parametrize(
    ("values", "first", "second"),
    [
        ("bytes", b"", b"\0b\0"),
        ("str", "", "zweï\0"),
        ("json", None, {"a": [1, 2.5, "ü"]}),
        ("<u4", 7, 2**32 - 1),
        ("S3", b"a", b"bcd"),
        ([("x", "<f4"), ("y", "<i2")], (1.5, -2), (0.0, 9)),
    ],
)
def test_values_of_every_kind_come_back_as_the_store_gives_them(
    tmp_path: Path, values: Any, first: Any, second: Any
) -> None:
    kind = values if isinstance(values, str) and values in ("bytes", "str", "json") else np.dtype(values)
    ms.build(tmp_path / "expected", {"old": first, "new": second}, values=kind, keys="exact")
    expected = ms.open(tmp_path / "expected")
    assert isinstance(expected, ms.Store)
    overlay = ms.Overlay(tmp_path / "base", tmp_path / "overlay", values=kind)
    overlay["old"] = first
    overlay.compact()
    overlay["new"] = second
    for mapping in (overlay, overlay.snapshot()):
        for key in ("old", "new"):
            assert mapping[key] == expected[key] and type(mapping[key]) is type(expected[key])
            assert dict(mapping.items())[key] == expected[key]
    overlay.compact()
    store = ms.open(tmp_path / "base")
    assert isinstance(store, ms.Store)
    assert store.info()["values"] == expected.info()["values"] and store["new"] == expected["new"]
    if kind != "json":
        with pytest.raises((TypeError, ValueError, OverflowError)):
            overlay["new"] = None
    assert overlay["new"] == expected["new"]


@pytest.mark.parametrize("dtype", ["<u8", "<i2"])
def test_integer_keys(tmp_path: Path, dtype: str) -> None:
    bounds = np.iinfo(dtype)
    keys = [bounds.min, 5, 1, bounds.max]
    ms.build(tmp_path / "base", (np.array(keys[:2], dtype), [b"a", b"b"]), keys="exact")
    overlay = ms.Overlay(tmp_path / "base", tmp_path / "overlay")
    for key in keys[1:]:
        overlay[key] = b"%d" % key
    assert overlay[bounds.max] == b"%d" % bounds.max and overlay[np.array(keys, dtype)[2]] == b"1"
    assert set(overlay) == set(keys) and overlay.get(2) is None
    for key in (bounds.max + 1, bounds.min - 1, 1 + (1 << 64)):
        assert key not in overlay and overlay.get(key, 5) == 5
        with pytest.raises(KeyError):
            del overlay[key]
        with pytest.raises(OverflowError):
            overlay[key] = b""
    for call in (overlay.get, overlay.__contains__, overlay.__delitem__):
        with pytest.raises(TypeError):
            call("1")
    overlay.compact()
    assert set(overlay) == set(keys) and overlay[bounds.max] == b"%d" % bounds.max


def test_long_keys_whose_digests_collide(overlay: ms.Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_overlay_state, "_digest", lambda key: bytes(32))
    keys = [letter * 600 for letter in "abcd"]
    overlay.update({key: key.encode() for key in keys[:3]})
    del overlay[keys[1]]
    overlay[keys[2]] = b"new"
    expected = {keys[0]: keys[0].encode(), keys[2]: b"new"}
    assert dict(overlay) == expected and keys[3] not in overlay
    again = beside(overlay)
    assert dict(again) == expected
    overlay.compact()
    assert dict(overlay) == expected and overlay.info()["entries"] == 0


def test_what_is_written_during_a_compaction_stays(overlay: ms.Overlay) -> None:
    overlay.update({f"k{i}": b"old" for i in range(100)})

    def meanwhile(done: int, total: int) -> None:
        overlay["k1"] = b"new"
        overlay["k200"] = b"more"
        overlay.pop("k2", None)

    expected = {f"k{i}": b"old" for i in range(100)} | {"k1": b"new", "k200": b"more"}
    del expected["k2"]
    overlay.compact(progress=meanwhile)
    assert dict(overlay) == expected and overlay.info()["entries"] == 3
    assert ms.open(overlay.info()["base"])["k1"] == b"old"
    overlay.compact()
    assert dict(overlay) == expected == dict(ms.open(overlay.info()["base"]).items())


def test_a_folded_state_is_dropped_some_at_a_time(overlay: ms.Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_overlay_state, "DROPPED_AT_ONCE", 7)
    overlay.update({f"k{i}": b"%d" % i for i in range(50)})
    assert overlay._view is not None and len(overlay._view.keys) == 50
    assert overlay.compact() and not overlay.compact()
    assert overlay.info()["entries"] == 0 and len(overlay) == 50
    assert len(overlay._view.keys) == 0  # look-ups go to the base again


def test_readers_keep_their_state_until_they_refresh(overlay: ms.Overlay) -> None:
    overlay.update({"a": b"1", "b": b"1"})
    reader = beside(overlay, readonly=True)
    snapshot = reader.snapshot()
    overlay["a"] = b"2"
    del overlay["b"]
    overlay.compact()
    overlay["c"] = b"3"
    for mapping in (reader, snapshot):
        assert dict(mapping) == {"a": b"1", "b": b"1"} and mapping["a"] == b"1" and "c" not in mapping
    reader.refresh()
    assert dict(reader) == dict(overlay) == {"a": b"2", "c": b"3"}
    assert dict(snapshot) == {"a": b"1", "b": b"1"}
    reader.close()
    overlay.close()
    assert dict(snapshot) == {"a": b"1", "b": b"1"}


def test_iteration_shows_the_moment_it_began(overlay: ms.Overlay) -> None:
    overlay.update({f"k{i}": b"" for i in range(3000)})
    seen = []
    for key in overlay:
        seen.append(key)
        if len(seen) % 1000 == 1:
            overlay[f"more{len(seen)}"] = b""
            overlay.compact()
    assert sorted(seen) == sorted(f"k{i}" for i in range(3000)) and len(overlay) == 3003


def test_batches(overlay: ms.Overlay) -> None:
    overlay["a"] = b"1"
    reader = beside(overlay)
    with overlay.batch():
        overlay["b"] = b"2"
        del overlay["a"]
        reader.refresh()
        assert overlay["b"] == b"2" and "a" not in overlay and dict(reader) == {"a": b"1"}
        with pytest.raises(KeyError):
            del overlay["a"]
        for waits in (overlay.batch().__enter__, overlay.compact, overlay.snapshot, overlay.__len__, overlay.items):
            with pytest.raises(ValueError, match="batch has ended"):
                list(waits())  # type: ignore[operator]
    reader.refresh()
    assert dict(overlay) == dict(reader) == {"b": b"2"}
    with pytest.raises(KeyError):
        overlay.delete_many(["b", "z"])
    with pytest.raises(TypeError):
        overlay.update({"c": b"3", "d": 4})
    assert dict(overlay) == {"b": b"2"}


def test_threads_write_and_read_at_once(overlay: ms.Overlay) -> None:
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for i in range(40):
                overlay[f"{name}{i}"] = b"%d" % i
                with overlay.batch():
                    overlay[f"{name}x"] = b"%d" % i
                    assert overlay[f"{name}x"] == b"%d" % i
                assert overlay[f"{name}{i}"] == b"%d" % i
                if i == 20:
                    overlay.compact()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and len(overlay) == 4 * 41


def test_a_base_with_fingerprints_is_read_and_changed_but_not_folded(tmp_path: Path) -> None:
    ms.build(tmp_path / "base", {"a": b"1", "b": b"2"}, fingerprint_bits=32)
    overlay = ms.Overlay(tmp_path / "base", tmp_path / "overlay")
    overlay["c"] = b"3"
    del overlay["a"]
    assert overlay["b"] == b"2" and overlay.get("a") is None and overlay["c"] == b"3"
    for call in (overlay.compact, overlay.__len__, overlay.clear, lambda: list(overlay)):
        with pytest.raises(TypeError, match="exact"):
            call()  # type: ignore[operator]
    assert overlay["c"] == b"3"


def test_a_base_replaced_by_others_is_refused_unless_asked_for(overlay: ms.Overlay) -> None:
    overlay.update({"a": b"1", "b": b"1"})
    overlay.compact()
    overlay["b"] = b"2"
    ms.build(overlay.info()["base"], {"a": b"other", "b": b"other"}, keys="exact")
    assert dict(overlay) == {"a": b"1", "b": b"2"}
    for call in (overlay.refresh, overlay.compact, lambda: beside(overlay)):
        with pytest.raises(ms.FormatError, match="rebase"):
            call()  # type: ignore[operator]
    again = beside(overlay, rebase=True)
    assert dict(again) == {"a": b"other", "b": b"2"}
    again.compact()
    ms.build(overlay.info()["base"], {"a": 1}, values="<u4")
    with pytest.raises(ms.FormatError, match="expected a base of"):
        beside(overlay, rebase=True)


def test_a_base_replaced_during_a_compaction_is_not_overwritten(overlay: ms.Overlay) -> None:
    overlay["a"] = b"1"
    overlay.compact()
    overlay["b"] = b"2"

    def replace(done: int, total: int) -> None:
        ms.build(overlay.info()["base"], {"theirs": b""}, keys="exact")

    with pytest.raises(ms.FormatError, match="got another"):
        overlay.compact(progress=replace)
    assert list(ms.open(overlay.info()["base"]).keys()) == ["theirs"]
    assert beside(overlay, rebase=True)["b"] == b"2"


def test_refusals(overlay: ms.Overlay, tmp_path: Path) -> None:
    overlay["a"] = b"1"
    with pytest.raises(TypeError, match="not"):
        beside(overlay, values="<u4")
    with pytest.raises(TypeError, match="not"):
        beside(overlay, key_dtype="<u4")
    with pytest.raises(ValueError, match="durable"):
        beside(overlay, durable=False)
    with pytest.raises(FileNotFoundError):
        ms.Overlay(tmp_path / "base", tmp_path / "nowhere", readonly=True)
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError):
        ms.Overlay(tmp_path / "base", tmp_path / "empty", readonly=True)
    assert list((tmp_path / "empty").iterdir()) == []
    ms.Filter.build(["a"]).save(tmp_path / "filter")
    with pytest.raises(ms.FormatError, match="expected a store"):
        ms.Overlay(tmp_path / "filter", tmp_path / "o2")
    ms.build(tmp_path / "none", ["a"], values=None)
    with pytest.raises(TypeError, match="values"):
        ms.Overlay(tmp_path / "none", tmp_path / "o3")
    reader = beside(overlay, readonly=True)
    for call in (
        lambda: reader.__setitem__("a", b""), lambda: reader.__delitem__("a"), lambda: reader.update(a=b""),
        reader.clear, reader.compact, lambda: reader.batch().__enter__(), reader.flush,
    ):  # fmt: skip
        with pytest.raises(PermissionError, match="readonly"):
            call()
    for key in (1, None, ("a",)):
        with pytest.raises(TypeError, match="key of this store"):
            overlay[key]
        with pytest.raises(TypeError, match="key of this store"):
            overlay[key] = b""
    with pytest.raises(UnicodeEncodeError):
        overlay["\ud800"] = b""
    with pytest.raises(TypeError):
        overlay.get()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        pickle.dumps(overlay.snapshot())


def test_closed(overlay: ms.Overlay) -> None:
    overlay["a"] = b"1"
    snapshot = overlay.snapshot()
    for mapping in (overlay, snapshot):
        mapping.close()
        mapping.close()
        for call in (lambda m: m["a"], lambda m: "a" in m, lambda m: m.get("a"), len, list, dict):
            with pytest.raises(ValueError, match="closed"):
                call(mapping)
    for call in (lambda m: m.__setitem__("a", b""), lambda m: m.refresh(), lambda m: m.compact(), lambda m: m.info()):
        with pytest.raises(ValueError, match="closed"):
            call(overlay)


def test_pickles_as_paths_and_options(overlay: ms.Overlay) -> None:
    overlay["a"] = b"1"
    again = pickle.loads(pickle.dumps(beside(overlay, readonly=True)))
    assert again["a"] == b"1"
    with pytest.raises(PermissionError):
        again["a"] = b"2"


def test_metadata_and_options_of_the_new_base(tmp_path: Path) -> None:
    ms.build(tmp_path / "base", {"a": b"1"}, keys="exact", metadata={"of": "tests"}, scan=True)
    overlay = ms.Overlay(tmp_path / "base", tmp_path / "overlay")
    overlay["b"] = b"2"
    overlay.compact(preset="fast", seed=5, fingerprint_bits=8)
    said = ms.open(tmp_path / "base").info()
    assert said["scan"] and said["metadata"] == {"of": "tests"} and (said["seed"], said["fingerprint_bits"]) == (5, 8)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_map_grows_under_snapshots_and_iterations(tmp_path: Path) -> None:
    with ms.Overlay(tmp_path / "base", tmp_path / "overlay", map_size=1 << 16, durable=False) as overlay:
        overlay.update({f"k{i}": b"old" for i in range(100)})
        snapshot, iterator = overlay.snapshot(), iter(overlay)
        first = next(iterator)
        overlay.update({f"k{i}": bytes(5000) for i in range(300)})
        assert overlay.info()["map_size"] > 1 << 20 and len(overlay) == 300
        assert snapshot["k7"] == b"old" and len(snapshot) == 100 and "k200" not in snapshot
        assert sorted([first, *iterator]) == sorted(snapshot)
