"""native/fastpath.c against mphfstore/_plain.py: the same answers and the same exceptions. Other test files run on the
plain path in a process of their own."""

from __future__ import annotations

import copy
import inspect
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import damaged, python, sections_of, with_section
from hypothesis import given
from hypothesis import strategies as st
from paths import FAST, NUMBERS, PLAIN, QUESTIONS, TEXTS, VALUES, WORDS, outcome

import mphfstore

TESTS = Path(__file__).parent
TREES, DIRECTORY, FINGERPRINTS, OFFSETS = 2, 3, 16, 18  # FORMAT.md


def test_the_setting_chooses_and_both_have_the_same_names() -> None:
    fast, plain = FAST._lookup, PLAIN._lookup
    assert (fast.Reader.__module__, plain.Reader.__module__) == ("mphfstore._fastpath", "mphfstore._plain")
    for name in set(fast.__all__) - {"join"}:
        members = [set(vars(getattr(module, name))) for module in (fast, plain)]
        common = {"__init__", "__new__", "__module__", "__dict__", "__weakref__", "__annotations__", "__doc__"}
        hidden = {"_owner", "_reader", "_values", "_array", "_count", "_width", "_one", "value", "_failed"}
        hidden |= {"_unpack", "_decode", "_length", "_value_of"}
        assert members[0] - common == members[1] - common - hidden - {"__firstlineno__", "__static_attributes__"}, name


def test_without_the_extension_the_plain_path_serves() -> None:
    hidden = "import sys; sys.modules['mphfstore._fastpath'] = None\n"
    code = hidden + "from mphfstore._lookup import join; print(join.__module__)"
    environment = {name: value for name, value in os.environ.items() if name != "MPHFSTORE_FASTPATH"}
    assert python(code, env=environment).stdout == "mphfstore._plain\n"


# The order is that of their time; those of building, file format and command line never see the difference.
OTHERS = ["surface", "open", "handles", "keys", "texts", "compression", "exact", "values_refused", "values", "store"]
OTHERS += ["arrow", "batches", "combinations", "concurrency", "scan_stores"]


@pytest.mark.skipif(os.environ.get("MPHFSTORE_FASTPATH") == "0", reason="this is the plain path")
def test_the_other_tests_pass_on_the_plain_path() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"test_{name}.py" for name in OTHERS)]
    environment = os.environ | {"MPHFSTORE_FASTPATH": "0"}
    done = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-5000:]


def same(data: bytes, keys: list[Any]) -> None:
    fast, plain = FAST.open(data), PLAIN.open(data)
    for closed in False, True:
        if closed:
            fast.close()
            plain.close()
        for question, ask in QUESTIONS.items():
            for key in keys:
                answers = [outcome(lambda: ask(handle, key)) for handle in (fast, plain)]  # noqa: B023
                if question != "iter" or not isinstance(answers[0], tuple):  # another TypeError
                    assert answers[0] == answers[1], (question, key)


def as_bytes(handle: Any, tmp_path: Path) -> bytes:
    handle.save(tmp_path / "of")
    return (tmp_path / "of").read_bytes()


@pytest.mark.parametrize("values", VALUES)
def test_stores_of_text(tmp_path: Path, values: str) -> None:
    kind, value = VALUES[values]
    for count in len(WORDS), 0:
        records = {word: value(i) for i, word in enumerate(WORDS[:count])}
        items = list(records) if kind is None else (list(records), list(records.values()))
        mphfstore.build(tmp_path / "s", items, values=kind, seed=1, fingerprint_bits=32)
        same((tmp_path / "s").read_bytes(), TEXTS)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", ">u4"])
def test_stores_of_integers(tmp_path: Path, dtype: str) -> None:
    bounds = np.iinfo(dtype)
    keys = np.array(sorted({bounds.min, bounds.max, *(i for i in (-2, -1, 0, 1, 5, 100) if i >= bounds.min)}), dtype)
    mphfstore.build(tmp_path / "s", (keys, keys), values="i8" if dtype != "u8" else "u8", seed=1, fingerprint_bits=32)
    same((tmp_path / "s").read_bytes(), NUMBERS)


def test_filters_and_functions(tmp_path: Path) -> None:
    for handle in (
        mphfstore.Filter.build(WORDS, fingerprint_bits=32, seed=1), mphfstore.MPHF.build(WORDS, seed=1),
        mphfstore.Filter.build([]), mphfstore.MPHF.build([]), mphfstore.Filter.build(WORDS, fingerprint_bits=0, seed=1),
    ):  # fmt: skip
        same(as_bytes(handle, tmp_path), TEXTS)
    for handle in (
        mphfstore.Filter.build(np.arange(9), fingerprint_bits=32, seed=1),
        mphfstore.MPHF.build(np.arange(9, dtype="i2"), seed=1),
    ):
        same(as_bytes(handle, tmp_path), NUMBERS)


@pytest.mark.parametrize("values", ["bytes", "bytes of one width", "floats"])
def test_files_that_contradict_themselves(tmp_path: Path, values: str, random_seed: int) -> None:
    kind, value = VALUES[values]
    keys = [f"k{i}" for i in range(300)]
    mphfstore.build(tmp_path / "s", (keys, [value(i) for i in range(300)]), values=kind, bucket_size=5, seed=1)
    data, rng, failures = (tmp_path / "s").read_bytes(), random.Random(random_seed), 0
    index = sorted({TREES, DIRECTORY, FINGERPRINTS, OFFSETS} & set(sections_of(data)))
    for _ in range(60):
        section = rng.choice(index)
        broken = with_section(data, section, bytes(damaged(sections_of(data)[section], rng)))
        errors = [outcome(lambda m=module, b=broken: m.open(b).close()) for module in (FAST, PLAIN)]
        assert errors[0] == errors[1]
        if errors[0] == outcome(lambda: None):
            fast, plain = FAST.open(broken), PLAIN.open(broken)
            for ask, key in itertools.product(("[]", "get", "in", "get_many or"), keys[:100]):
                answers = [outcome(lambda: QUESTIONS[ask](handle, key)) for handle in (fast, plain)]  # noqa: B023
                assert answers[0] == answers[1]
                failures += "FormatError" in str(answers)
    print(f"{failures} look-ups failed")


@pytest.mark.parametrize("name", ["get", "index"])
def test_wrong_arguments_are_type_errors(name: str) -> None:
    for module in FAST, PLAIN:
        method = getattr(module.Store if name == "get" else module.MPHF, name)
        handle = module.MPHF.build(["a"]) if name == "index" else module.Store.__new__(module.Store)
        wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
            ((), {}), (("a", "b", "c"), {}), (("a",), {"key": "a"}), (("a",), {"other": 1}), ((), {"default": 1}),
        ]  # fmt: skip
        for arguments, named in wrong:
            with pytest.raises(TypeError):
                method(handle, *arguments, **named)
        with pytest.raises((TypeError, AttributeError)):
            method(object(), "a")
        assert list(inspect.signature(method).parameters) == ["self", "key", "default"][: 2 + (name == "get")]
        assert inspect.getdoc(method)


def test_handles_that_were_never_opened_are_closed_ones() -> None:
    for module in FAST, PLAIN:
        for handle in module.Store.__new__(module.Store), module.MPHF.__new__(module.MPHF):
            with pytest.raises(ValueError, match="closed"):
                handle.index("a") if isinstance(handle, module.MPHF) else handle["a"]
            with pytest.raises((TypeError, AttributeError)):
                handle._attach(handle)
                handle["a"]


def test_a_copy_is_closed_on_its_own(tmp_path: Path) -> None:
    mphfstore.build(tmp_path / "s", {"a": b"1"})
    for module in FAST, PLAIN:
        store = module.open(tmp_path / "s")
        other = copy.copy(store)
        store.close()
        assert other["a"] == b"1" and len(other) == 1 and "closed" in repr(copy.copy(store))


def test_a_class_of_the_users_own_has_the_last_word(tmp_path: Path) -> None:
    mphfstore.build(tmp_path / "s", {"a": b"1"})
    for module in FAST, PLAIN:

        class Folded(module.Store):  # type: ignore[name-defined, misc]
            def __getitem__(self, key: str) -> Any:
                return super().__getitem__(key.lower())

            def __contains__(self, key: object) -> bool:
                return key == "all" or super().__contains__(key)

        store = Folded((tmp_path / "s").read_bytes())
        assert store["A"] == b"1" and "all" in store and "a" in store and "A" not in store


# --- lists ---

KIND = {"bytes": lambda module: module._keys.BytesKeys(), "values": lambda module: module._values._bytes}
ANY_KEY = st.text() | st.binary() | st.text("ab\ud800ü") | st.integers(0, len(TEXTS) - 1).map(TEXTS.__getitem__)
KEYS = st.lists(st.text()) | st.lists(st.binary()) | st.lists(st.text("abc")) | st.lists(ANY_KEY)


def joined(module: ModuleType, keys: list[Any], kind: Any) -> Any:
    data, offsets = module._keys.join(keys, kind)
    return bytes(data), None if offsets is None else np.frombuffer(offsets, np.uint64).tolist()


@given(KEYS, st.sampled_from(list(KIND)))
def test_lists_of_text_are_joined_alike(keys: list[Any], kind: str) -> None:
    fast, plain = (outcome(lambda m=module: joined(m, keys, KIND[kind](m))) for module in (FAST, PLAIN))
    assert fast == plain


@given(
    st.sampled_from(["u1", "i1", "u2", "i4", "u4", "i8", "u8"]),
    st.lists(st.integers(-128, 127) | st.integers(0, 255) | st.sampled_from(NUMBERS))
    | st.lists(st.integers(-130, 260)),
)
def test_lists_of_integers_are_joined_alike(dtype: str, keys: list[Any]) -> None:
    fast, plain = (outcome(lambda m=module: joined(m, keys, m._keys.IntegerKeys(dtype))) for module in (FAST, PLAIN))
    assert fast == plain


def test_long_keys_and_many_keys_are_joined() -> None:
    for keys in (
        [b"x" * 5_000_000, "ü" * 3_000_000],
        [b"%d" % i for i in range(100_000)],
        [""] * 1000 + ["y" * 100_000],
        [],
    ):
        assert joined(FAST, keys, FAST._keys.BytesKeys()) == joined(PLAIN, keys, PLAIN._keys.BytesKeys())


def test_a_list_that_a_key_empties_is_an_error_or_its_beginning() -> None:
    class Emptying:
        def __index__(self) -> int:
            keys.clear()
            return 1

    keys: list[Any] = []
    keys += [*range(100), *(Emptying() for _ in range(50))]
    with pytest.raises(IndexError):
        FAST._keys.join(keys, FAST._keys.IntegerKeys("u1"))


def test_join_refuses_what_is_no_list_and_no_kind() -> None:
    class Odd:
        size, signed, text = 3, False, False

    for arguments in (("a",), Odd()), ([1], Odd()), ([1], object()), ([],), (None, FAST._keys.BytesKeys()):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            FAST._keys.join(*arguments)
