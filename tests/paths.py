"""Both paths of look-ups in one process – native/fastpath.c and mphfstore/_plain.py –, keys of every kind for them, and
what an answer is, so that answers can be compared."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mphfstore import _native

pytest.importorskip("mphfstore._fastpath", exc_type=ImportError)


def package(setting: str) -> ModuleType:
    """The package as it is imported under a setting of MPHFSTORE_FASTPATH, beside the one that all tests import."""

    def ours() -> list[str]:
        return [name for name in sys.modules if name.partition(".")[0] == "mphfstore"]

    before = {name: sys.modules.pop(name) for name in ours()}
    sys.modules["mphfstore._native"] = _native
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPHFSTORE_FASTPATH", setting)
        try:
            return importlib.import_module("mphfstore")
        finally:
            for name in ours():
                del sys.modules[name]
            sys.modules.update(before)


FAST, PLAIN = package("1"), package("0")


class Text(str):
    def encode(self, *arguments: Any) -> bytes:
        raise AssertionError("not asked")


class Bytes(bytes):
    def __bytes__(self) -> bytes:
        raise AssertionError("not asked")

    def __len__(self) -> int:
        return 1000


class Whole:
    def __init__(self, result: Any) -> None:
        self.result = result

    def __index__(self) -> Any:
        if isinstance(self.result, type):
            raise self.result("of __index__")
        return self.result

    def __repr__(self) -> str:
        return f"Whole({self.result!r})"


class Pair(tuple):  # type: ignore[type-arg]
    """An integer whose KeyError must not take it for two arguments."""

    def __index__(self) -> int:
        return 99


class Integer(int):
    pass


RELEASED = memoryview(b"a")
RELEASED.release()
WORDS: list[Any] = ["", "a", "b", "schlüssel", "鍵", "\0", "a\0", "x" * 1000, "🔑" * 9]
TEXTS: list[Any] = [
    *WORDS, *(word.encode() for word in WORDS), Text("a"), Bytes(b"a"), np.str_("schlüssel"), np.bytes_(b"a"),
    np.bytes_(b""), np.bytes_(b"\0"), bytearray(b"a"), memoryview(b"a"), memoryview(b"aXbX")[::2], memoryview(b""),
    RELEASED,
    "absent", b"absent", "\ud800", "a\udfff", Text("\ud800"), 1, 1.5, None, True, ("a",), ["a"], np.int64(1), Whole(1),
    object, np.array(b"a"), KeyError("a"),
]  # fmt: skip
NUMBERS: list[Any] = [
    *range(-3, 4),
    *(sign * 2**k + d for sign in (1, -1) for k in (7, 8, 15, 16, 31, 32, 63, 64, 65, 200) for d in (-1, 0, 1)),
    *(kind(7) for kind in (np.int8, np.uint8, np.int32, np.uint64, np.int64, Integer)), True, False, np.bool_(True),
    Whole(5), Whole(-5), Whole(2**70), Whole("5"), Whole(KeyError), Whole(OverflowError),
    Whole(TypeError), Whole(OSError),
    Pair((1, 2)), np.array(5), 1.0, "1", b"1", None, (1,), "\ud800", np.float64(1), 1j,
]  # fmt: skip
VALUES: dict[str, tuple[Any, Callable[[int], Any]]] = {
    "bytes": ("bytes", lambda i: b"%d" % i * (i % 3)),
    "bytes of one width": ("bytes", lambda i: b"%08d" % i),
    "nothing but empty bytes": ("bytes", lambda i: b""),
    "floats": ("<f8", float),
    "strings": ("S3", lambda i: b"%d" % i),
    "records": ([("a", "<u2"), ("b", "S1")], lambda i: (i, b"x")),
    "text": ("str", lambda i: f"schlüssel {i}" * (i % 3)),
    "text of one width": ("str", lambda i: f"ü{i:04}"),
    "JSON": ("json", lambda i: {"number": [i, None]}),
    "none": (None, lambda i: None),
}


def described(answer: Any) -> Any:
    """An answer so that it can be compared: with types, also of the elements."""
    if isinstance(answer, np.ndarray):
        return "array", answer.dtype.str, answer.tolist()
    if isinstance(answer, list):
        return [described(one) for one in answer]
    return type(answer), repr(answer)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return described(call())
    except Exception as error:
        assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__), (
            "a second exception"
        )
        return type(error).__name__, repr(error.args), str(error)


QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "[]": lambda handle, key: handle[key],
    "get": lambda handle, key: handle.get(key),
    "get or": lambda handle, key: handle.get(key, "default"),
    "get by names": lambda handle, key: handle.get(default=7, key=key),
    "in": lambda handle, key: key in handle,
    "not in": lambda handle, key: key not in handle,
    "index": lambda handle, key: handle.index(key),
    "index by name": lambda handle, key: handle.index(key=key),
    "index_many": lambda handle, key: handle.index_many([key]),
    "contains_many": lambda handle, key: handle.contains_many((key, key)),
    "get_many": lambda handle, key: handle.get_many([key]),
    "get_many or": lambda handle, key: handle.get_many([key], None),
    "get_many of nothing": lambda handle, key: handle.get_many([]),
    "iter": lambda handle, key: list(handle) if key == "a" else None,
}
