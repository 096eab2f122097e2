"""Files whose checksums are right and whose contents are not: an error or some value, never a crash, a hang or an
index beyond the keys."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import BLOCK_SUMS, HEADER, assemble, patched, python, sections_of, table, with_section

import mphfstore as ms
from mphfstore import _build

KEYS = [f"key {i}" for i in range(300)]
NASTY = [0, 1, 2, 63, 64, 255, 300, 65_535, 65_536, 1 << 31, 1 << 32, 1 << 57, 1 << 58, 1 << 61, (1 << 63) - 1, 1 << 63]
NASTY += [(1 << 64) - number for number in (1, 2, 64, 300, 1 << 32)]
# Offset and size of the header's numbers.
NUMBERS = [
    (32, 8),
    (40, 8),
    (48, 8),
    (56, 4),
    (60, 4),
    *((i, 1) for i in range(64, 70)),
    (72, 1),
    (73, 1),
    (74, 2),
    (76, 2),
]
SCHEMA, TREES, DIRECTORY, METADATA, FINGERPRINTS, VALUES, OFFSETS, BLOB = 1, 2, 3, 5, 16, 17, 18, 19
STORED_KEYS, KEY_OFFSETS, ORDINALS, BLOCKS, DICTIONARY = 20, 21, 22, 23, 24
FIELDS_OF_SCHEMA = ["key_type", "keys", "key_width", "values", "value_width", "distinct_values", "compression"]
FIELDS_OF_SCHEMA += ["block_size", "blob_size", "scan"]


def skewed(keys: int, count: int = 300) -> ms.MPHF:
    """A function with so many keys in its first bucket; these are not found where they are, but somewhere."""
    genuine = _build.hash_batch

    def forced(batch: Any, seed: int) -> Any:
        hi, lo = genuine(batch, seed)
        hi[:keys] = 0
        return hi, lo

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_build, "hash_batch", forced)
        return ms.MPHF.build([f"key {i}" for i in range(count)], seed=1, preset="fast", bucket_size=5)


KINDS: dict[str, Callable[[Path], None]] = {
    "function": lambda path: ms.MPHF.build(KEYS, seed=1, leaf_size=5, bucket_size=5).save(path),
    "rotation": lambda path: ms.MPHF.build(KEYS, seed=1, method="rotation").save(path),
    "filter": lambda path: ms.Filter.build(KEYS, seed=1, preset="compact").save(path),
    "variable": lambda path: ms.build(path, {k: b"v" * (i % 7) for i, k in enumerate(KEYS)}, seed=1, metadata=[1]),
    "fixed": lambda path: ms.build(path, dict.fromkeys(KEYS, b"abc"), seed=1, fingerprint_bits=0, method="brute"),
    "records": lambda path: ms.build(
        path, (np.arange(300, dtype="u2"), np.zeros(300, "<u4,<f8")), values="<u4,<f8", seed=1, fingerprint_bits=13
    ),
    "keys only": lambda path: ms.build(path, KEYS, values=None, seed=1, preset="fast"),
    "exact": lambda path: ms.build(
        path, {k: f"größe {i % 9}" for i, k in enumerate(KEYS)}, values="str", keys="exact", seed=1
    ),
    "exact integers": lambda path: ms.build(
        path, (np.arange(300, dtype="u2"), [[i] * (i % 4) for i in range(300)]), values="json", keys="exact", seed=1
    ),
    "exact of one width": lambda path: ms.build(
        path, [f"{i:06}" for i in range(300)], values=None, keys="exact", seed=1
    ),
    "once": lambda path: ms.build(path, {k: b"v" * (i % 7) * 9 for i, k in enumerate(KEYS)}, dedupe=True, seed=1),
    "compressed": lambda path: ms.build(
        path,
        {k: [f"text number {j} of {i}" for j in range(i % 13)] for i, k in enumerate(KEYS)},
        values="json",
        compression="zstd",
        dedupe=True,
        keys="exact",
        seed=1,
    ),
    "large bucket": lambda path: skewed(290).save(path),
    "scan": lambda path: ms.build(path, KEYS, values=None, seed=1, scan=True),
    "scan, exact": lambda path: ms.build(
        path, [KEYS[i] * (1 + i % 9) for i in range(300)], values=None, keys="exact", seed=1, scan=True
    ),
    "scan of a filter": lambda path: ms.Filter.build(
        [b"a", b"ab", *KEYS[2:]], seed=1, scan=True, fingerprint_bits=3
    ).save(path),
    "one key": lambda path: ms.build(path, {"key 0": b"xy"}, seed=1),
    "nothing": lambda path: ms.build(path, {}, seed=1),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("hostile")
    for name, write in KINDS.items():
        write(folder / name)
    return {name: (folder / name).read_bytes() for name in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_file_put_together_again_is_the_same(files: dict[str, bytes], kind: str) -> None:
    data = files[kind]
    assert assemble(data[:HEADER], sections_of(data)) == data
    assert ask_everything(data) == "answered"


def mutants(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """Endlessly: some numbers of the header, of sections and of the schema replaced by what hurts; sections cut,
    grown, dropped or filled with the contents of others. All checksums are right."""
    while True:
        header, sections = bytearray(data[:HEADER]), sections_of(data)
        for _ in range(draw.choice((1, 1, 2, 4))):
            kind = draw.choice(list(sections))
            content = bytearray(sections[kind])
            how = draw.randrange(8)
            if how == 0:
                at, size = draw.choice(NUMBERS)
                header[at : at + size] = (draw.choice(NASTY) % (1 << 8 * size)).to_bytes(size, "little")
            elif how == 1 and kind != SCHEMA:
                content = content[: draw.randrange(len(content) + 1)]
            elif how == 2:
                content += draw.randbytes(draw.choice((1, 7, 8, 64)))
            elif how == 3 and len(sections) > 1 and draw.random() < 0.2:
                del sections[kind]
                continue
            elif how == 4 and draw.random() < 0.2:
                content = bytearray(sections[draw.choice(list(sections))])
            elif kind == SCHEMA:
                content = bytearray(mutated_schema(content, draw))
            elif content:
                for _ in range(draw.choice((1, 3))):
                    at = draw.randrange(min(len(content), draw.choice((64, 1 << 20)))) // 8 * 8
                    raw = struct.pack("<Q", draw.choice(NASTY)) if draw.random() < 0.5 else draw.randbytes(8)
                    content[at : at + 8] = raw[: len(content[at : at + 8])]
            sections[kind] = bytes(content)
        yield assemble(bytes(header), sections)


def mutated_schema(content: bytes, draw: random.Random) -> bytes:
    odd = [
        None,
        True,
        -1,
        0,
        3,
        1 << 40,
        1 << 70,
        1.5,
        "",
        "bytes",
        "<u4",
        ">i8",
        "|O",
        "V0",
        "S0",
        "V9",
        "(2,)<u2",
        "M8[ns]",
    ]
    odd += ["str", "json", "exact", "fingerprint", "zstd", 1, 6, 64, 1023, 1024, 1 << 20, 1 << 61, 1 << 63]
    odd += [[], {}, [["a", "<u4"]], [["a", "|O"]], [["a", "<u2", [2]]], [["a", "V0"]], [[]], [[1, 2]], "x" * 1000, "\0"]
    try:
        schema = json.loads(content)
        schema[draw.choice(FIELDS_OF_SCHEMA)] = draw.choice(odd)
    except (ValueError, TypeError, RecursionError):  # mutated before
        return draw.choice([b"", b"[]", b"{", b"null", b"\xff", b"[" * 100_000, b"1" * 10_000])
    return json.dumps(schema).encode()


def ask_everything(data: bytes) -> str:
    """Opens a file and asks it everything. Whatever is not a FormatError, a refusal of what this file's kind cannot do,
    or a sound answer raises AssertionError."""
    try:
        handle = ms.open(data)
    except ms.FormatError:
        return "refused"
    count = len(handle)
    integers = handle.info()["key_type"] not in ("bytes", "str")
    keys: list[Any] = list(range(0, 120)) if integers else [*KEYS[:100], *(f"absent {i}" for i in range(20))]
    try:
        handle.verify()
        handle.to_bytes()
        if not isinstance(handle, ms.MPHF):
            scan_everything(handle, count)
        if isinstance(handle, ms.MPHF):
            if count:
                indices = handle.index_many(keys)
                assert ((indices >= 0) & (indices < count)).all(), indices
                assert [handle.index(key) for key in keys] == indices.tolist()
            return "answered"
        indices = handle.index_many(keys)
        assert ((indices >= -1) & (indices < count)).all(), indices
        assert [key in handle for key in keys] == (indices >= 0).tolist()
        assert handle.contains_many(keys).tolist() == (indices >= 0).tolist()
        if isinstance(handle, ms.Store) and handle.info()["values"] is not None:
            batch = handle.get_many([key for key, index in zip(keys, indices, strict=True) if index >= 0])
            assert len(batch) == (indices >= 0).sum()
            for key in keys:
                value = handle.get(key)
                kinds = bytes | str | int | float | list | dict | np.generic | np.ndarray
                assert value is None or isinstance(value, kinds), value
            assert sum(1 for _ in handle.values()) == count
        if isinstance(handle, ms.Store) and handle.info()["key_storage"] == "exact":
            own = list(handle.keys())
            assert len(own) == count
            assert handle.info()["key_width"] is None or integers == (handle.keys_array().dtype.kind in "iu")
    except ms.FormatError:
        return "contradiction"
    except OverflowError:
        assert integers  # of a dtype that has not all of these keys
    return "answered"


SCANNED = " ".join(KEYS[:60]).encode() + b"key 1key 1 ab" + bytes(20)


def scan_everything(handle: ms.Store | ms.Filter, count: int) -> None:
    """Hits lie in the text, ascend, and are keys of the file."""
    info = handle.info()
    modes: list[dict[str, Any]] = [{"mode": "windows", "width": [1, 6, 300]}]
    if info["scan"] or info["key_storage"] == "exact":
        modes.append({"mode": "anywhere"})
    if info["key_type"] in ("bytes", "str"):
        modes.append({"mode": "words", "ngrams": [1, 2]})
    for mode in modes:
        hits = ms.scan(SCANNED, handle, **mode)
        assert (hits.start >= 0).all() and (hits.length > 0).all() and (hits.end <= len(SCANNED)).all()
        assert ((hits.index >= 0) & (hits.index < count)).all()
        assert sorted(zip(hits.start, hits.length, strict=True)) == list(zip(hits.start, hits.length, strict=True))
        assert info["key_storage"] == "exact" or hits.probable


HOSTILE = """
import os, random, resource, sys
sys.path.insert(0, sys.argv[1])
import test_hostile
if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # whose shadow is terabytes
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
data, seed = open(sys.argv[2], "rb").read(), int(sys.argv[3])
outcomes = dict.fromkeys(("refused", "contradiction", "answered"), 0)
stream = test_hostile.mutants(data, random.Random(seed))
for number in range(int(sys.argv[4])):
    hostile = next(stream)
    open(sys.argv[2] + ".mutant", "wb").write(hostile)
    outcomes[test_hostile.ask_everything(hostile)] += 1
print(*outcomes.values())
"""


@pytest.mark.parametrize("isa", ["baseline", None])
@pytest.mark.parametrize("kind", KINDS)
def test_no_mutant_crashes_a_reader(
    files: dict[str, bytes],
    kind: str,
    isa: str | None,
    tmp_path: Path,
    random_seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if isa:
        monkeypatch.setenv("MPHFSTORE_ISA", isa)
    (tmp_path / "file").write_bytes(files[kind])
    done = python(HOSTILE, Path(__file__).parent, tmp_path / "file", random_seed, 300)
    assert done.returncode == 0, (
        f"seed {random_seed}, the last one is {tmp_path / 'file.mutant'}: {done.stderr[-1500:]}"
    )
    refused, contradiction, answered = map(int, done.stdout.split())
    assert refused > 20 and contradiction + answered > 20


FIELDS = {
    "keys": (32, "Q"), "buckets": (48, "Q"), "largest bucket": (56, "I"), "method": (64, "B"), "leaf size": (65, "B"),
    "first fanout": (66, "B"), "second fanout": (67, "B"), "fingerprint bits": (68, "B"), "kind": (69, "B"),
    "zero": (70, "H"), "parameters": (72, "Q"), "third fanout": (72, "B"), "root bits": (73, "B"),
    "leaf room": (74, "H"), "splitting room": (76, "H"), "reserved": (120, "Q"),
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", ["variable", "function", "nothing"])
def test_no_value_of_a_header_field_gets_past_unnoticed(files: dict[str, bytes], kind: str, field: str) -> None:
    offset, layout = FIELDS[field]
    size = struct.calcsize(layout)
    for number in {*range(256), *(n % (1 << 8 * size) for n in NASTY)}:
        if 0 <= number < 1 << 8 * size:
            outcome = ask_everything(patched(files[kind], offset, layout, number))
            if field in ("kind", "zero", "parameters", "reserved", "keys") and number != original(files[kind], field):
                assert outcome in ("refused", "contradiction"), f"{field} {number}: {outcome}"


def original(data: bytes, field: str) -> int:
    offset, layout = FIELDS[field]
    return int(struct.unpack_from("<" + layout, data, offset)[0])


@pytest.mark.parametrize("number", NASTY)
def test_huge_counts_in_sequences_are_refused(files: dict[str, bytes], number: int) -> None:
    for kind, section, words in (("rotation", DIRECTORY, (3, 4)), ("variable", OFFSETS, (0, 1))):
        content = sections_of(files[kind])[section]
        for word in words:
            patch = content[: 8 * word] + struct.pack("<Q", number) + content[8 * word + 8 :]
            if patch != content:
                assert ask_everything(with_section(files[kind], section, patch)) != "crashed"
                if word == words[0]:
                    with pytest.raises(ms.FormatError):
                        ms.open(with_section(files[kind], section, patch))


@pytest.mark.parametrize("kind", KINDS)
def test_every_section_is_missed(files: dict[str, bytes], kind: str) -> None:
    for section in set(table(files[kind])) - {BLOCK_SUMS, METADATA}:
        with pytest.raises(ms.FormatError):
            ms.open(with_section(files[kind], section, None))


@pytest.mark.parametrize("section", [0, 6, 15, 26, 1 << 31, (1 << 32) - 1])
def test_unknown_sections_are_refused(files: dict[str, bytes], section: int) -> None:
    with pytest.raises(ms.FormatError, match="unknown section"):
        ms.open(with_section(files["variable"], section, b"12345678"))


def test_sections_of_other_kinds_of_files_are_refused(files: dict[str, bytes]) -> None:
    for kind, section in (("function", FINGERPRINTS), ("function", VALUES), ("filter", BLOB), ("fixed", OFFSETS)):
        with pytest.raises(ms.FormatError):
            ms.open(with_section(files[kind], section, bytes(900)))


@pytest.mark.parametrize("kind", KINDS)
def test_verify_notices_a_flip_of_any_byte(files: dict[str, bytes], kind: str) -> None:
    missed = []
    for at in range(len(files[kind])):
        damaged = bytearray(files[kind])
        damaged[at] ^= 1 << at % 8
        try:
            ms.open(bytes(damaged)).verify()
        except ms.FormatError:
            continue
        missed.append(at)
    assert missed == []


@pytest.mark.parametrize("key", ["os.system", "__reduce__", "cos\nsystem\n(S'true'\ntR."])
def test_nothing_in_a_schema_is_executed(files: dict[str, bytes], key: str) -> None:
    for field in ("key_type", "values"):
        schema = {**json.loads(sections_of(files["variable"])[SCHEMA]), field: key}
        with pytest.raises(ms.FormatError):
            ms.open(with_section(files["variable"], SCHEMA, json.dumps(schema).encode()))
