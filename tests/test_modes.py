"""Modes "mmap", "pread" and "ram": the same answers and exceptions; what a file that changes under its reader does."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import damaged, python, sections_of, with_section
from hypothesis import given
from hypothesis import strategies as st
from paths import FAST, NUMBERS, PLAIN, QUESTIONS, TEXTS, VALUES, WORDS, outcome

import mphfstore as ms
from mphfstore import _remote
from mphfstore._format import elias_fano_words
from mphfstore._source import Descriptor, Window

MODES = ["mmap", "pread", "ram"]
ALLOWED = "FormatError", "KeyError", "TypeError"  # the last for a default that does not fit the dtype


def same(path: Path, keys: list[Any]) -> None:
    """All modes, on both paths of look-ups, give the same answers to every question."""
    handles = [module.open(path, mode=mode) for module in (FAST, PLAIN) for mode in MODES]
    for closed in False, True:
        if closed:
            for handle in handles:
                handle.close()
        for (question, ask), key in itertools.product(QUESTIONS.items(), keys):
            answers = [outcome(lambda: ask(handle, key)) for handle in handles]  # noqa: B023
            if question != "iter" or not isinstance(answers[0], tuple):
                assert all(answer == answers[0] for answer in answers), (question, key)


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("bits", [0, 3, 8, 16, 31, 32])
def test_stores_of_text(tmp_path: Path, values: str, bits: int) -> None:
    kind, value = VALUES[values]
    for count in len(WORDS), 0:
        records = {word: value(i) for i, word in enumerate(WORDS[:count])}
        items = list(records) if kind is None else (list(records), list(records.values()))
        ms.build(tmp_path / "s", items, values=kind, seed=1, fingerprint_bits=bits)
        same(tmp_path / "s", TEXTS if bits == 16 else [*WORDS, "absent", b"absent", None])


@pytest.mark.parametrize("dtype", ["u1", "i8"])
def test_stores_of_integers_filters_and_functions(tmp_path: Path, dtype: str) -> None:
    keys = np.arange(100, dtype=dtype)
    ms.build(tmp_path / "s", (keys, keys), values="i8", seed=1, fingerprint_bits=32)
    ms.Filter.build(keys, fingerprint_bits=13, seed=1).save(tmp_path / "f")
    ms.MPHF.build(keys, seed=1).save(tmp_path / "m")
    for name in "sfm":
        same(tmp_path / name, NUMBERS)


@pytest.mark.parametrize("values", ["bytes", "bytes of one width", "records"])
def test_long_batches(tmp_path: Path, values: str, random_seed: int) -> None:
    kind, value = VALUES[values]
    count, rng = 40_000, random.Random(random_seed)
    keys = [f"k{i}" for i in range(count)]
    column = [value(i % 60_000) for i in range(count)]
    ms.build(tmp_path / "s", (keys, column), values=kind, preset="quick", seed=1, fingerprint_bits=32)
    stores = [ms.open(tmp_path / "s", mode=mode) for mode in MODES]
    for size in 1, 2, 100, 30_000:
        batch = rng.choices([*keys, *(f"absent {i}" for i in range(count // 4))], k=size)
        default = b"?" if kind == "bytes" else (7, b"?")
        answers = [store.get_many(batch, default) for store in stores]
        indices = [store.index_many(batch) for store in stores]
        assert all(np.array_equal(answer, answers[0]) and type(answer) is type(answers[0]) for answer in answers)
        assert all(np.array_equal(index, indices[0]) for index in indices)
    if kind != "bytes":
        assert all(np.array_equal(store.values_array(), stores[0].values_array()) for store in stores)
        return
    assert all([bytes(store.get_view(key)) for key in keys[:50]] == column[:50] for store in stores)


@given(
    st.lists(st.integers(0, 3) | st.integers(0, 40) | st.just(70_000), min_size=1, max_size=3000),
    st.data(),
)
def test_offsets_are_read_as_the_native_reader_reads_them(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], data: st.DataObject
) -> None:
    count = len(lengths) * data.draw(st.sampled_from([1, 1, 9]))
    values = np.zeros(count + 1, np.uint64)
    np.cumsum(np.resize(np.array(lengths, np.uint64), count), out=values[1:])
    path = tmp_path_factory.mktemp("offsets") / "o"
    path.write_bytes(elias_fano_words(values).tobytes())
    window = Window(Descriptor(os.open(path, os.O_RDONLY)), 0, path.stat().st_size)
    offsets = _remote.Offsets(window, count, int(values[-1]))
    indices = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=200)), np.int64)
    for chosen in indices, np.arange(count):
        begins, ends = offsets.spans(chosen)
        assert np.array_equal(begins, values[chosen]) and np.array_equal(ends, values[chosen + 1])
    assert [offsets.span(i) for i in indices.tolist()] == [(values[i], values[i + 1]) for i in indices.tolist()]


def test_offsets_with_samples_that_are_far(tmp_path: Path) -> None:
    count = 300_000
    lengths = np.ones(count, np.uint64)
    lengths[[300, 299_990]] = 1 << 40  # gaps beyond 16 bits in `upper`
    values = np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths)])
    (tmp_path / "o").write_bytes(elias_fano_words(values).tobytes())
    window = Window(Descriptor(os.open(tmp_path / "o", os.O_RDONLY)), 0, (tmp_path / "o").stat().st_size)
    offsets = _remote.Offsets(window, count, int(values[-1]))
    assert (offsets._short[:-1] == _remote.FAR).any()
    for chosen in [np.arange(count), *np.arange(0, count, 997)[:, None], *np.arange(250, 560, 3)[:, None]]:
        begins, ends = offsets.spans(chosen)
        assert np.array_equal(begins, values[chosen]) and np.array_equal(ends, values[chosen + 1])
        assert offsets.span(int(chosen[-1])) == (begins[-1], ends[-1])


def test_pieces_come_in_few_sorted_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = np.random.default_rng(1).bytes(8 << 20)
    (tmp_path / "f").write_bytes(content)
    window = Window(Descriptor(os.open(tmp_path / "f", os.O_RDONLY)), 0, len(content))
    begins = np.array([5_000_000, 10, 0, 9, 5_000_100, 7_000_000, 10, *range(1_000_000, 4_000_000, 1000)])
    reads: list[tuple[int, int]] = []
    monkeypatch.setattr(Window, "read", _noting(reads, Window.read))
    rows = _remote.rows_at(window, begins, 20)
    assert [row.tobytes() for row in rows] == [content[begin : begin + 20] for begin in begins.tolist()]
    assert reads == sorted(reads) and len(reads) == 3 + 3
    assert max(length for _, length in reads) <= _remote.LONGEST + 20
    assert len(_remote.rows_at(window, np.empty(0, np.int64), 20)) == 0


def _noting(reads: list[tuple[int, int]], read: Callable[..., bytes]) -> Callable[..., bytes]:
    def noted(window: Window, begin: int, length: int) -> bytes:
        reads.append((begin, length))
        return read(window, begin, length)

    return noted


def test_a_look_up_reads_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 20_000
    ms.build(tmp_path / "s", {f"k{i}": b"%d" % i * 50 for i in range(count)}, preset="quick", fingerprint_bits=32)
    reads: list[tuple[int, int]] = []
    monkeypatch.setattr(Window, "read", _noting(reads, Window.read))
    store = ms.open(tmp_path / "s", mode="pread")
    sizes = store.info()["sections"]
    assert (
        sum(length for _, length in reads) < 1.1 * (sizes["trees"] + sizes["directory"] + sizes["offsets"] / 8) + 9000
    )
    for key in "k7", "k19999":
        reads.clear()
        assert store[key] == key[1:].encode() * 50
        assert len(reads) == 4 and sum(length for _, length in reads) < 600  # fingerprint, offset (2), value
    reads.clear()
    assert "absent" not in store and len(reads) <= 1
    reads.clear()
    assert len(store.get_many([f"k{i}" for i in range(count)])) == count
    assert len(reads) < 20


@pytest.mark.parametrize("values", ["bytes", "bytes of one width", "floats"])
def test_files_that_contradict_themselves(tmp_path: Path, values: str, random_seed: int) -> None:
    kind, value = VALUES[values]
    keys = [f"k{i}" for i in range(600)]
    ms.build(tmp_path / "s", (keys, [value(i) for i in range(600)]), values=kind, bucket_size=5, seed=1)
    data, rng, failed = (tmp_path / "s").read_bytes(), random.Random(random_seed), 0
    sections = sections_of(data)
    for round_ in range(80):
        section = rng.choice([number for number in sections if number in (2, 3, 16, 18)])
        content = damaged(sections[section], rng)
        if round_ % 5 == 0:
            del content[rng.randrange(len(content)) // 8 * 8 :]
        (tmp_path / "b").write_bytes(with_section(data, section, bytes(content)))
        for mode in MODES:
            try:
                store: Any = ms.open(tmp_path / "b", mode=mode)
                for ask, key in itertools.product(("[]", "get", "in", "get_many or"), keys[:50]):
                    answer = outcome(lambda: QUESTIONS[ask](store, key))  # noqa: B023
                    assert not str(answer[0]).endswith("Error") or answer[0] in ALLOWED, answer
                store.get_many(keys, value(0))
            except ms.FormatError:
                failed += 1
    print(f"{failed} failed")


def test_damage_is_found_by_verify_in_every_mode(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {f"k{i}": b"%d" % i for i in range(30_000)}, preset="quick")
    data = bytearray((tmp_path / "s").read_bytes())
    data[-5] ^= 1
    (tmp_path / "d").write_bytes(data)
    for mode in MODES:
        assert "k1" in ms.open(tmp_path / "s", mode=mode, verify=True)
        ms.open(tmp_path / "d", mode=mode)
        with pytest.raises(ms.ChecksumError, match="blob"):
            ms.open(tmp_path / "d", mode=mode, verify=True)


TRUNCATED = """
import os, sys, mphfstore as ms
path, mode, mapped = sys.argv[1], sys.argv[2], 0
keys = [f"k{i}" for i in range(50_000)]
store = ms.open(path, mode=mode)
assert store["k7"] == b"7" * 20
for size in (os.path.getsize(path) // 2, 4096, 0):
    os.truncate(path, size)
    asks = [lambda: [store[key] for key in keys], lambda: store.get_many(keys), store.verify, store.to_bytes,
            lambda: store.contains_many(keys) if size < 5000 else store.verify()]
    for ask in asks:
        try:
            ask()
            assert mode == "ram"
        except (OSError, ms.FormatError) as error:
            assert mode == "pread" and "truncated" in str(error), error
print("survived")
"""


@pytest.mark.parametrize("mode", ["pread", "ram"])
def test_a_file_truncated_under_its_reader_is_an_exception(tmp_path: Path, mode: str) -> None:
    ms.build(tmp_path / "s", {f"k{i}": b"%d" % i * 20 for i in range(50_000)}, preset="quick")
    done = python(TRUNCATED, tmp_path / "s", mode)
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


def test_a_read_that_fails_is_an_os_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ms.build(tmp_path / "s", {"a": b"1"})
    store = ms.open(tmp_path / "s", mode="pread")
    read = os.pread

    def failing(*arguments: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", failing)
    for ask in "[]", "get", "in", "get_many":
        with pytest.raises(OSError, match="Input/output"):
            QUESTIONS[ask](store, "a")
    monkeypatch.setattr(os, "pread", lambda fd, length, at: read(fd, min(length, 7), at))  # as the system may
    assert store["a"] == b"1" and ms.open(tmp_path / "s", mode="pread", verify=True).get_many(["a"]) == [b"1"]


def test_pages_are_read_ahead_and_locked(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", {f"k{i}": b"%d" % i for i in range(1000)})
    for source, mode in itertools.product((tmp_path / "s", (tmp_path / "s").read_bytes()), MODES):
        store = ms.open(source, mode=mode)
        store.prefetch()
        store.prefetch(wait=True)
        if mode != "pread" or isinstance(source, bytes):
            store.lock()
        else:
            with pytest.raises(ValueError, match="mode='ram'"):
                store.lock()
        assert store["k7"] == b"7"
    store.close()
    for ask in store.prefetch, store.lock, store.stale, store.reload:
        with pytest.raises(ValueError, match="closed"):
            ask()


LIMITED = """
import ctypes, os, resource, sys, mphfstore as ms
resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, 4096))
if os.geteuid() == 0:
    os.setuid(65534)  # root may lock whatever it likes
try:
    ms.open(sys.stdin.buffer).lock()
except OSError as error:
    print(error.errno, error)
"""


def test_locking_more_than_allowed_says_how_much_is(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", np.arange(100_000), values=None, preset="quick")
    with open(tmp_path / "s", "rb") as file:
        done = python(LIMITED, stdin=file)
    assert "bytes in memory: more than this process may lock: 4096 bytes" in done.stdout, done.stderr
