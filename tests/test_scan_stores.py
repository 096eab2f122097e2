"""Scans for the keys of stores and filters, of every kind and in every mode of opening; the prefilter in their
files."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import scans
from conftest import damaged, sections_of, with_section
from hypothesis import given
from hypothesis import strategies as st
from scans import joined, listed

import mphfstore as ms
from mphfstore import _scan_filter
from mphfstore._keys import BytesKeys

SCAN = 25
KEYS = [b"a", b"ab", b"Oslo", b"New York", b"sixteen bytes or", b"sixteen bytes or more", b"\xff\0", b"Lima", b""]
TEXT = b"Oslo, Lima and New \n York: sixteen bytes or more, a\xff\0 ab OSLO " * 40
MODES = ["mmap", "pread", "ram"]
WAYS: list[dict[str, Any]] = [
    {}, {"mode": "words"}, {"mode": "words", "ngrams": [1, 2, 4]}, {"mode": "windows", "width": [1, 2, 4, 16]},
    {"fold": True},
]  # fmt: skip


def expected(store: Any, keys: list[bytes], way: dict[str, Any]) -> list[scans.Hit]:
    """What a naive scan for the keys finds, with the store's indices."""
    options = dict(way)
    mode = options.pop("mode", "anywhere")
    find: dict[str, Callable[..., list[scans.Hit]]] = {"words": scans.words, "windows": scans.windows}
    rest = [options.get("ngrams", [1])] if mode == "words" else [options["width"]] if mode == "windows" else []
    sought = [key for key in keys if key]
    if "fold" in way:
        hits = scans.folded(scans.anywhere, TEXT, sought)
    else:
        hits = find.get(mode, scans.anywhere)(TEXT, sought, *rest)
    indices = store.index_many(sought)
    return [(start, length, int(indices[i])) for start, length, i in hits]


STORES: dict[str, dict[str, Any]] = {
    "exact": {"keys": "exact"},
    "exact, prefilter": {"keys": "exact", "scan": True},
    "exact, no fingerprints": {"keys": "exact", "fingerprint_bits": 0},
    "fingerprints, prefilter": {"fingerprint_bits": 32, "scan": True},
    "brute": {"fingerprint_bits": 32, "scan": True, "method": "brute"},
    "values": {"keys": "exact", "values": "bytes", "dedupe": True, "scan": True},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", STORES)
def test_stores(kind: str, mode: str, tmp_path: Path) -> None:
    options = {"values": None, **STORES[kind]}
    (tmp_path / "text").write_bytes(TEXT)
    ms.build(tmp_path / "s", dict.fromkeys(KEYS, b"v" * 9) if options["values"] else KEYS, **options)
    store = ms.open(tmp_path / "s", mode=mode, verify=True)
    assert store.info()["scan"] == options.get("scan", False)
    for way in WAYS:
        if "fold" in way and "keys" not in options:
            continue
        hits = ms.scan(TEXT, store, **way)
        assert listed(hits) == expected(store, KEYS, way) and len(hits) > 50
        assert hits.probable == ("keys" not in options)
        assert hits.false_positive_rate == (0.0 if "keys" in options else 2.0**-32)
        assert joined(ms.scan_file(tmp_path / "text", store, chunk=50, **way)) == listed(hits)
        assert listed(ms.scan(TEXT, tmp_path / "s", **way)) == listed(hits)


def test_filters() -> None:
    made = ms.Filter.build(KEYS, fingerprint_bits=32, scan=True)
    assert made.info()["scan"] and ms.Filter.from_bytes(made.to_bytes()).info()["scan"]
    for way in WAYS[:-1]:
        hits = ms.scan(TEXT, made, **way)
        assert listed(hits) == expected(made, KEYS, way) and hits.probable
    lower = ms.Filter.build([key.lower() for key in KEYS], fingerprint_bits=32, scan=True)
    assert len(ms.scan(TEXT, lower, fold=True)) > len(ms.scan(TEXT, lower)) > 0


def test_fingerprints_alone_need_a_prefilter_to_be_found_anywhere(tmp_path: Path) -> None:
    made = ms.Filter.build(KEYS)
    with pytest.raises(TypeError, match="scan=True"):
        ms.scan(TEXT, made)
    assert len(ms.scan(TEXT, made, mode="words")) > 0


def test_a_prefilter_is_made_once_for_a_handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ms.build(tmp_path / "s", KEYS, values=None, keys="exact")
    store = ms.open(tmp_path / "s")
    first = listed(ms.scan(TEXT, store))
    monkeypatch.setattr("mphfstore._scan_patterns.section_of", None)
    assert listed(ms.scan(TEXT, store)) == first
    ms.build(tmp_path / "s", [b"york"], values=None, keys="exact", scan=True)
    scanner = ms.Scanner(store)
    assert store.reload() and len(ms.scan(b"york York", store)) == 1
    assert listed(scanner.scan(TEXT)) == first  # goes on with the file it knew
    store.close()
    assert listed(scanner.scan(TEXT)) == first
    with pytest.raises(ValueError, match="closed"):
        ms.scan(TEXT, store)


def test_integers_are_sought_as_their_bytes(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", (np.array([1, 258], "<u2"), np.arange(2)), values="i8", keys="exact")
    store = ms.open(tmp_path / "s")
    hits = ms.scan(b"\1\0\2\1\0", store)
    assert store.keys_array()[hits.index].tolist() == [1, 258, 1] and hits.start.tolist() == [0, 2, 3]
    assert listed(ms.scan(b"\1\0\2\1\0", store, mode="windows", width=2)) == listed(hits)
    with pytest.raises(TypeError, match="no words"):
        ms.scan(b"1", store, mode="words")


def test_no_keys_and_no_bytes(tmp_path: Path) -> None:
    for keys in [], [b""]:
        ms.build(tmp_path / "s", keys, values=None, keys="exact", scan=True)
        for mode in MODES:
            for way in WAYS:
                assert len(ms.scan(TEXT, ms.open(tmp_path / "s", mode=mode), **way)) == 0


KEY = st.lists(st.sampled_from([b"a", b"b", b"\0", b"ccc"]), max_size=30).map(b"".join)


@given(st.lists(KEY, unique=True, max_size=40), st.randoms())
def test_the_prefilter_equals_the_references(keys: list[bytes], rng: random.Random) -> None:
    section = reference.scan.encode_prefilter(keys)
    batches = [BytesKeys().batch(keys[:5]), BytesKeys().batch(keys[5:])]
    assert _scan_filter.section_of(batches).tobytes() == section
    rng.shuffle(keys)
    assert _scan_filter.section_of([BytesKeys().batch(keys)]).tobytes() == section
    prefilter = reference.scan.Prefilter.decode(section)
    assert prefilter.encode() == section
    text = b"".join(keys)
    for at in range(len(text)):
        lengths = prefilter.admits(text, at)
        assert lengths == sorted(lengths)
        assert {len(key) for key in keys if key and text.startswith(key, at)} <= set(lengths)


def test_a_file_equals_the_references(tmp_path: Path) -> None:
    keys = [b"%d" % i * (1 + i % 9) for i in range(500)]
    ms.build(tmp_path / "s", keys, values=None, seed=3, scan=True, preset="quick")
    data = (tmp_path / "s").read_bytes()
    reader = reference.Reader(data)
    reader.verify()
    assert reader.schema["scan"] is True
    p = reader.params
    built = reference.build(
        [(key, None) for key in keys], params=p, bucket_size=100, seed=3, fingerprint_bits=16, kind=3,
        schema=reader.schema,
    )  # fmt: skip
    assert built == data


def test_a_damaged_prefilter_never_makes_a_hit(tmp_path: Path, random_seed: int) -> None:
    rng = random.Random(random_seed)
    ms.build(tmp_path / "s", KEYS, values=None, keys="exact", scan=True)
    data = (tmp_path / "s").read_bytes()
    genuine = listed(ms.scan(TEXT, ms.Store.from_bytes(data)))
    content = sections_of(data)[SCAN]
    refused = lost = 0
    for number in range(300):
        broken = bytes(damaged(content, rng)) if number % 3 else bytes(damaged(content[:64], rng)) + content[64:]
        if number % 10 == 0:
            broken = rng.choice([content[:-1], content + b"\0", content[:15], b"", content + bytes(1 << 20)])
        try:
            hits = listed(ms.scan(TEXT, ms.Store.from_bytes(with_section(data, SCAN, broken))))
        except ms.FormatError:
            refused += 1
            continue
        assert set(hits) <= set(genuine)
        lost += hits != genuine
    full = content[:16] + content[16:32] + b"\xff" * (len(content) - 32)  # lets everything pass
    assert listed(ms.scan(TEXT, ms.Store.from_bytes(with_section(data, SCAN, full)))) == genuine
    assert refused > 10 and lost


@pytest.mark.parametrize("at", [0, 4, 8, 12])
def test_impossible_sizes_are_refused_when_the_file_is_opened(at: int, tmp_path: Path) -> None:
    ms.build(tmp_path / "s", KEYS, values=None, scan=True)
    data = (tmp_path / "s").read_bytes()
    content = sections_of(data)[SCAN]
    own = int.from_bytes(content[at : at + 4], "little")
    for number in {0, 1, 2, 31, 32, 33, 41, 63, 64, 65, 1 << 28, 1 << 31, (1 << 32) - 1, own + 1} - {own}:
        broken = content[:at] + number.to_bytes(4, "little") + content[at + 4 :]
        with pytest.raises(ms.FormatError):
            ms.open(with_section(data, SCAN, broken))
    for lengths in ([21, 16], [16, 16], [15, 21], [0, 16], [16, 1 << 62], [16, (1 << 64) - 1]):
        broken = content[:16] + np.array(lengths, "<u8").tobytes() + content[32:]
        with pytest.raises(ms.FormatError):
            ms.open(with_section(data, SCAN, broken))


def test_a_scan_of_a_flipped_section_is_found_by_verify(tmp_path: Path) -> None:
    ms.build(tmp_path / "s", KEYS, values=None, scan=True)
    data = bytearray((tmp_path / "s").read_bytes())
    data[-5] ^= 4
    store = ms.open(bytes(data))
    with pytest.raises(ms.ChecksumError, match="scan"):
        store.verify()


def test_from_hits_to_keys_and_values(make: Any) -> None:
    cities = {"Lima": 10, "Oslo": 7, "New York": 8}
    text = "Oslo, New York, Oslo"
    numbers = make(cities, values="<i4", keys="exact")
    texts = make({key: str(value) for key, value in cities.items()}, values="str", scan=True, fingerprint_bits=32)
    for store in numbers, texts:
        hits = ms.scan(text, store)
        assert list(map(int, store.values_at(hits.index))) == [7, 8, 7]
    assert numbers.keys_at(ms.scan(text, numbers).index) == ["Oslo", "New York", "Oslo"]
    assert numbers.values_at([]).dtype == np.dtype("<i4") and numbers.keys_at(np.empty(0, np.int64)) == []
    with pytest.raises(TypeError, match="fingerprints"):
        texts.keys_at([0])
    for wrong in ([3], [-1], np.array([1 << 40])):
        with pytest.raises(IndexError, match="0 to 2"):
            numbers.values_at(wrong)
    with pytest.raises(TypeError, match="one dimension"):
        numbers.keys_at(["Oslo"])


def test_scanners_travel(make: Any) -> None:
    store = make(["he", "she", "hers"], values=None, keys="exact")
    for patterns in (["he", "she", "hers"], "he", store, (word for word in ["he", "she"])):
        scanner = ms.Scanner(patterns, fold=True)
        there = pickle.loads(pickle.dumps(scanner))
        assert listed(there.scan("USHERS")) == listed(scanner.scan("USHERS")) and "Scanner" in repr(there)


def test_integer_keys_have_no_case(make: Any) -> None:
    store = make(np.array([65, 97], np.uint8), values=None, keys="exact")
    assert listed(ms.scan(b"Aa", store, mode="windows", width=1)) != []
    with pytest.raises(TypeError, match="no case"):
        ms.scan(b"Aa", store, fold=True)


def test_arrays_in_any_order_of_memory() -> None:
    array = np.frombuffer(b"abcdef", np.uint8).reshape(2, 3)
    assert listed(ms.scan(np.asfortranarray(array), ["cd", "ad"])) == [(2, 2, 0)]


def test_a_folded_dictionary_stays_with_its_store(make: Any) -> None:
    store = make(["Oslo", "LIMA"], values=None, keys="exact")
    assert len(ms.scan("oslo lima", store, fold=True)) == 2
    kept = store._current().folded
    assert kept is not None and len(ms.scan("OSLO", store, fold=True)) == 1 and store._current().folded is kept
