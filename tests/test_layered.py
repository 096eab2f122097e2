"""Look-ups in one mapping over another: the native module and the one in Python answer and raise alike."""

from __future__ import annotations

import gc
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mphfstore as ms
from mphfstore import _layered_plain

native = pytest.importorskip("mphfstore._layered")
MODULES = [native, _layered_plain]


def over(module: Any, base: Any, changed: list[bytes], size: int = 0, text: bool = True) -> Any:
    class Over(module.Layered):  # type: ignore[misc]
        asked: list[Any]

        def _item(self, key: Any) -> Any:
            self.asked.append(key)
            raise KeyError(key)

        def _get(self, key: Any, default: Any) -> Any:
            self.asked.append(key)
            return default

        def _has(self, key: object) -> bool:
            self.asked.append(key)
            return key == "yes"

    made, keys = Over(), module.Keyset(7)
    made.asked = []
    keys.update(changed)
    made._attach(base, keys, size, text)
    return made


def outcome(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    try:
        return call(*arguments, **named)
    except Exception as error:
        return type(error), error.args


@pytest.mark.parametrize("kind", ["store", "dict"])
def test_the_base_is_asked_for_what_is_unchanged_and_python_for_the_rest(kind: str, tmp_path: Path) -> None:
    items = {"a": b"1", "é": b"2", "changed": b"3", "": b"4"}
    ms.build(tmp_path / "s", items, keys="exact")
    base: Any = ms.open(tmp_path / "s") if kind == "store" else items | {key.encode(): items[key] for key in items}
    results = []
    for module in MODULES:
        layer = over(module, base, [b"changed", b"yes"])
        seen = []
        for key in (
            "a",
            b"a",
            "é",
            "é".encode(),
            "",
            b"",
            "changed",
            b"changed",
            "yes",
            "absent",
            b"\xff",
            "\ud800",
            1,
            None,
        ):
            seen += [outcome(call, layer, key) for call in (operator.getitem, operator.contains)]
            seen += [outcome(layer.get, key), outcome(layer.get, key, 5), outcome(layer.get, key, default=6)]
        results.append((seen, layer.asked))
    assert results[0] == results[1]
    assert set(results[0][1]) == {"changed", b"changed", "yes", "\ud800", 1, None}


def test_integers_of_any_size_and_sign(tmp_path: Path) -> None:
    for dtype in ("u1", "i2", "u4", "i8", "u8"):
        bounds = np.iinfo(dtype)
        keys = [bounds.min, 3, 5, bounds.max]
        ms.build(tmp_path / dtype, (np.array(keys, dtype), [b"%d" % key for key in keys]), keys="exact")
        store = ms.open(tmp_path / dtype)
        raw = [np.array([key], np.dtype(dtype).newbyteorder("<")).tobytes() for key in (5, bounds.max)]
        results = []
        for module in MODULES:
            layer = over(module, store, raw, size=np.dtype(dtype).itemsize, text=False)
            asked = [*keys, True, np.uint8(3), bounds.max + 1, bounds.min - 1, 5 + (1 << 64), -1, "3", 3.0]
            found = [outcome(call, layer, key) for call in (operator.getitem, operator.contains) for key in asked]
            results.append((found, layer.asked))
        assert results[0] == results[1]
        assert results[0][0][:2] == [b"%d" % bounds.min, b"3"] and {5, bounds.max} <= set(results[0][1][:4])


@pytest.mark.parametrize("module", MODULES)
def test_a_keyset_has_every_key_that_was_added_and_few_others(module: Any) -> None:
    keys = module.Keyset(3)
    for count in (0, 1, 31, 32, 33, 1000, 200_000):
        keys.update(b"%d" % i for i in range(count))
        keys.add(b"%d" % count)
        assert all(b"%d" % i in keys for i in range(0, count + 1, 1 + count // 5000))
        assert count * 0.999 <= len(keys) <= 200_001
    assert sum(b"x%d" % i in keys for i in range(100_000)) < 60  # 5 expected


@pytest.mark.parametrize("wrong", ["text", 1, None])
def test_a_keyset_is_of_bytes(wrong: Any) -> None:
    keys = native.Keyset(3)
    for call in (lambda: keys.add(wrong), lambda: keys.update([b"a", wrong]), lambda: wrong in keys):
        with pytest.raises(TypeError):
            call()
    assert b"a" in keys


def test_nothing_is_leaked_or_freed_too_early() -> None:
    class Base(dict[Any, Any]):
        pass

    base, default = Base(a="1"), object()
    layer = over(native, base, [b"changed"])
    gc.collect()
    before = [sys.getrefcount(each) for each in (base, default, layer)]
    for _ in range(1000):
        assert layer["a"] == "1" and layer.get("b", default) is default and layer.get("changed", default) is default
        layer._attach(base, native.Keyset(1), 0, True)
        layer._attach(base, native.Keyset(2), 0, True)
        layer.asked.clear()
    assert [sys.getrefcount(each) for each in (base, default, layer)] == before
    layer.itself = layer
    del layer
    gc.collect()
    assert sys.getrefcount(base) < before[0]


def test_wrong_arguments() -> None:
    layer = over(native, {}, [])
    for arguments in ((), ("a", 1, 2), ("a", 1, 2, 3)):
        with pytest.raises(TypeError):
            layer.get(*arguments)
    for call in (
        lambda: layer.get("a", other=1),
        lambda: layer._attach({}, {}, 0, True),
        lambda: layer._attach({}, None),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="9 bytes"):
        layer._attach({}, None, 9, True)
    with pytest.raises(AttributeError):
        layer._attach(1, None, 0, True)
    with pytest.raises(TypeError):
        native.Keyset()
    assert outcome(lambda: native.Layered()["a"])[0] is AttributeError  # only subclasses know what to do
