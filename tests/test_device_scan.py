"""Scans on a device: the hits are native code's, in its order, whatever the pieces and the room."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scans import joined, listed

import mphfstore as ms
from mphfstore import _device_scan

pytestmark = pytest.mark.usefixtures("every_device")
BACKEND, SESSION = "", Any  # every_device sets them


def drawn(seed: int, letters: str, longest: int, count: int) -> tuple[bytes, list[bytes]]:
    """A text of pieces of its patterns and others."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(letters, k=draw.randint(1, longest))) for _ in range(count)]
    text = "".join(draw.choice(words)[draw.randint(0, 2) :] + draw.choice(["", letters[0]]) for _ in range(400))
    return text.encode(), list(dict.fromkeys(word.encode() for word in words))


DRAWN = [drawn(1, "ab", 6, 30), drawn(2, "ab\0", 40, 30), drawn(3, "abcdeé", 20, 60), drawn(4, "ACGT", 31, 200)]


def check(text: Any, patterns: Any, **options: Any) -> None:
    expected = ms.scan(text, patterns, **options)
    found = ms.scan(text, patterns, backend=BACKEND, **options)
    assert listed(found) == listed(expected)
    assert found.false_positive_rate == expected.false_positive_rate


@pytest.mark.parametrize("problem", DRAWN)
@pytest.mark.parametrize("piece", [1 << 26, 1 << 8, 37])
def test_anywhere(problem: tuple[bytes, list[bytes]], piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device_scan, "PIECE", piece)
    text, patterns = problem
    check(text, patterns)
    check(text, patterns, fold=True)
    assert listed(ms.scan(text, patterns, backend=BACKEND))


@pytest.mark.parametrize("problem", DRAWN)
def test_windows(problem: tuple[bytes, list[bytes]]) -> None:
    text, patterns = problem
    for width in (1, 5, [2, 3, 31], range(1, 41)):
        check(text, patterns, mode="windows", width=width)


@pytest.mark.parametrize("staged", [4096, 8, 1])
@pytest.mark.parametrize("pattern", [b"a", b"ab", b"abab", b"b" * 20, b"no", b"x" * 100_000])
def test_one_pattern(pattern: bytes, staged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device_scan, "STAGED", staged)
    for text in (b"", b"a", DRAWN[0][0], b"ab" * 5000, b"b" * 99):
        check(text, [pattern])


def test_hits_without_room_are_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[int] = []
    launch = type(SESSION.device).launch

    def counted(self: Any, *given: Any) -> Any:
        launches.append(1)
        return launch(self, *given)

    monkeypatch.setattr(type(SESSION.device), "launch", counted)
    monkeypatch.setattr(_device_scan, "ROOM", 1)
    hits = ms.scan(b"a" * 2000, [b"a", b"aa", b"aaa"], backend=BACKEND)
    assert len(hits) == 3 * 2000 - 3 and len(launches) == 2
    monkeypatch.undo()
    check(b"a" * 2000, [b"a", b"aa", b"aaa"])


@pytest.mark.parametrize("exact", [False, True])
def test_files(exact: bool, tmp_path: Path) -> None:
    text, patterns = DRAWN[2]
    (tmp_path / "text").write_bytes(text)
    options: dict[str, Any] = {"keys": "exact"} if exact else {"scan": True}
    ms.build(tmp_path / "s", patterns, values=None, fingerprint_bits=16, seed=1, **options)
    for mode in ("mmap", "pread"):
        with ms.open(tmp_path / "s", mode=mode) as store:
            check(text, store)
            check(text, store, mode="windows", width=[2, 5])
            parts = ms.scan_file(tmp_path / "text", store, chunk=100, backend=BACKEND)
            assert joined(parts) == listed(ms.scan(text, store))


def test_what_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="words are found by native code"):
        ms.scan(b"a", [b"a", b"b"], mode="words", backend=BACKEND)
    with pytest.raises(ValueError, match="backend is one of"):
        ms.scan(b"a", b"a", backend="gpu")
    assert len(ms.scan(b"a", [], backend=BACKEND)) == 0
    assert len(ms.scan(b"a b", [b"a", b"c"], mode="words", backend="auto")) == 1
    assert np.array_equal(ms.scan(b"aba", b"a", backend="auto").start, [0, 2])


def test_a_contradictory_file_gives_an_exception() -> None:
    from conftest import sections_of, with_section

    text, patterns = DRAWN[3]
    data = ms.Filter.build(patterns, seed=1, scan=True).to_bytes()
    directory = bytearray(sections_of(data)[3])
    directory[64:80] = b"\xff" * 16  # sizes of the first buckets
    broken = ms.Filter.from_bytes(with_section(data, 3, bytes(directory)))
    with pytest.raises(ms.FormatError, match="contradicts"):
        ms.scan(text, broken, backend=BACKEND)
