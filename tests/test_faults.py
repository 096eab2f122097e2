"""Damaged, foreign and hostile files give an exception or a wrong value, never a crash."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import reference
import xxhash

import mphfstore as ms


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("faults") / "s"
    ms.build(path, {f"key{i}": b"v" * (i % 7) for i in range(300)}, seed=1, metadata={"a": 1})
    return path.read_bytes()


def with_new_checksums(data: bytes) -> bytes:
    """A file whose contents were changed, with all checksums made to fit (FORMAT.md §1)."""
    patched = bytearray(data)
    count = struct.unpack_from("<H", patched, 10)[0]
    entries = [struct.unpack_from("<IIQQQ", patched, 128 + 32 * i) for i in range(count)]
    sums = b""
    for position, (kind, _, offset, length, _) in enumerate(entries):
        if kind >= 16:
            run = reference.block_sums(bytes(patched[offset : offset + length]))
            struct.pack_into("<Q", patched, 128 + 32 * position + 24, xxhash.xxh3_64_intdigest(run))
            sums += run
    for position, (kind, _, offset, length, _) in enumerate(entries):
        if kind == 4:
            patched[offset : offset + length] = sums
        if kind < 16:
            total = xxhash.xxh3_64_intdigest(bytes(patched[offset : offset + length]))
            struct.pack_into("<Q", patched, 128 + 32 * position + 24, total)
    struct.pack_into("<Q", patched, 24, 0)
    struct.pack_into("<Q", patched, 24, xxhash.xxh3_64_intdigest(bytes(patched[: 128 + 32 * count])))
    return bytes(patched)


def test_the_helper_changes_nothing_in_a_sound_file(data: bytes) -> None:
    assert with_new_checksums(data) == data


def test_every_truncation_is_a_format_error(data: bytes) -> None:
    for length in (*range(700), *range(700, len(data), 37), len(data) - 1):
        with pytest.raises(ms.FormatError):
            ms.open(data[:length])


def test_appended_bytes_and_other_files(data: bytes, tmp_path: Path) -> None:
    for wrong in (data + b"\0", b"", b"SQLite format 3\0" * 100, b"\0" * 4096):
        with pytest.raises(ms.FormatError):
            ms.open(wrong)
        (tmp_path / "f").write_bytes(wrong)
        with pytest.raises(ms.FormatError):
            ms.open(tmp_path / "f")


def test_a_newer_version_and_an_unknown_feature_say_so(data: bytes) -> None:
    newer, feature = bytearray(data), bytearray(data)
    newer[8] = 2
    feature[12] = 1
    with pytest.raises(ms.FormatVersionError, match=r"expected format version 1 or less, got 2.*upgrade"):
        ms.open(bytes(newer))
    with pytest.raises(ms.FormatVersionError, match="features 0x1"):
        ms.open(bytes(feature))


def test_every_flipped_byte_is_found(data: bytes) -> None:
    reader = reference.Reader(data)
    table = {kind: (offset, offset + length) for kind, _, offset, length, _ in (
        struct.unpack_from("<IIQQQ", data, 128 + 32 * i) for i in range(len(reader.sections)))}  # fmt: skip
    for kind, (begin, end) in {0: (0, 128 + 32 * len(table)), **table}.items():
        for at in range(begin, end):
            damaged = bytearray(data)
            damaged[at] ^= 1 << at % 8
            with pytest.raises(ms.FormatError):
                opened = ms.open(bytes(damaged))
                assert kind >= 16, f"byte {at} of section {kind} opened"
                opened.verify()


HOSTILE = """
import sys, random
sys.path.insert(0, sys.argv[1])
from test_faults import with_new_checksums, mutate
import mphfstore as ms
data, seed = open(sys.argv[2], "rb").read(), int(sys.argv[3])
draw, outcomes = random.Random(seed), {"error": 0, "value": 0}
keys = [f"key{i}" for i in range(0, 330, 3)]
for _ in range(400):
    hostile = with_new_checksums(mutate(data, draw))
    try:
        handle = ms.open(hostile)
        for key in keys:
            try:
                if key in handle and not isinstance(handle, ms.Filter):
                    handle.get(key)
                outcomes["value"] += 1
            except ms.FormatError:
                outcomes["error"] += 1
        indices = handle.index_many(keys)
        assert len(handle) == 0 or indices.max() < len(handle)
        handle.get_many(keys, default=None)
    except (ms.FormatError, MemoryError, AttributeError):
        outcomes["error"] += 1
print(outcomes["error"] > 50, outcomes["value"] > 50)
"""


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Some fields of the header or words of the sections replaced by what hurts."""
    hostile = bytearray(data)
    nasty = (0, 1, 255, 65_535, 1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
    count = struct.unpack_from("<H", data, 10)[0]
    spans = [(32, 72)] + [struct.unpack_from("<QQ", data, 128 + 32 * i + 8) for i in range(count)]
    for _ in range(draw.choice((1, 1, 2, 5))):
        offset, length = draw.choice(spans)
        if length < 8:
            continue
        at = offset + draw.randrange(0, min(length - 7, draw.choice((64, 1 << 20))))
        if draw.random() < 0.5:
            struct.pack_into("<Q", hostile, at, draw.choice(nasty))
        else:
            hostile[at] = draw.randrange(256)
    return bytes(hostile)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("isa", ["baseline", ""])
def test_hostile_files_never_crash_a_reader(seed: int, isa: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    command = [sys.executable, "-c", HOSTILE, str(Path(__file__).parent), str(tmp_path / "f"), str(seed)]
    environment = {**os.environ, **({"MPHFSTORE_ISA": isa} if isa else {})}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout) == (0, "True True\n"), f"seed {seed}: {done.stderr[-2000:]}"
