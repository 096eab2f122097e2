"""XXH3-128 in C against the xxhash package."""

import random

import numpy as np
import pytest
import xxhash

from mphfstore._build import hash_batch
from mphfstore._keys import BytesKeys, IntegerKeys
from mphfstore._native import ffi, lib

SEEDS = [
    0,
    1,
    2,
    0x7FFFFFFF,
    1 << 31,
    1 << 32,
    1 << 63,
    (1 << 64) - 1,
    *(random.Random(1).getrandbits(64) for _ in range(12)),
]


def native_hash(key: bytes, seed: int) -> int:
    hi, lo = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    lib.mphf_hash(key, len(key), seed, hi, lo)
    return hi[0] << 64 | lo[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_length_to_2000(seed: int) -> None:
    data = random.Random(seed).randbytes(2000)
    wrong = [n for n in range(2001) if native_hash(data[:n], seed) != xxhash.xxh3_128_intdigest(data[:n], seed)]
    assert wrong == []


@pytest.mark.parametrize("length", [2001, 4096, 65_535, 100_000, 1 << 20])
def test_long_keys_at_any_alignment(length: int) -> None:
    data = random.Random(length).randbytes(length + 8)
    buffer = ffi.from_buffer("uint8_t[]", data)
    hi, lo = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    for start in range(8):
        lib.mphf_hash(buffer + start, length, 5, hi, lo)
        assert hi[0] << 64 | lo[0] == xxhash.xxh3_128_intdigest(data[start : start + length], 5)


def test_batches_hash_as_single_keys_do() -> None:
    keys = [random.Random(n).randbytes(n % 40) for n in range(500)]
    hi, lo = hash_batch(BytesKeys().batch(keys), 9)
    assert [int(h) << 64 | int(low) for h, low in zip(hi, lo, strict=True)] == [native_hash(key, 9) for key in keys]


def test_fixed_width_rows_hash_without_their_trailing_nuls() -> None:
    keys = [b"a", b"bc\0d", b"", b"\0", b"abcd"]
    hi, _ = hash_batch(BytesKeys().batch(np.array(keys, "S4")), 3)
    assert [int(h) for h in hi] == [native_hash(key.rstrip(b"\0"), 3) >> 64 for key in keys]


def test_integers_hash_as_their_little_endian_bytes() -> None:
    hi, lo = hash_batch(IntegerKeys(">i4").batch(np.array([-2, 77], ">i4")), 0)
    expected = [xxhash.xxh3_128_intdigest(value.to_bytes(4, "little", signed=True)) for value in (-2, 77)]
    assert [int(h) << 64 | int(low) for h, low in zip(hi, lo, strict=True)] == expected
