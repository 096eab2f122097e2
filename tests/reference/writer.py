"""Files built (§1, §2, §7)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from xxhash import xxh3_64_intdigest, xxh3_128_intdigest

from . import chained
from .bits import M64, ceil_div, pack, require, to_bits
from .function import FunctionReader, Params, build_function
from .scan import encode_prefilter
from .sections import (
    BLOCK_SUMS,
    DIRECTORY,
    ENTRY,
    FINGERPRINTS,
    HEADER,
    KINDS,
    MAGIC,
    METADATA,
    METHODS,
    SCAN,
    SCHEMA,
    TREES,
    block_sums,
    check_schema,
    encode_keys,
    encode_values,
    section_kinds,
    to_json,
)


def hash_key(key: bytes, seed: int) -> tuple[int, int]:
    """(hi, lo) of a key (§2)."""
    return divmod(xxh3_128_intdigest(key, seed), 1 << 64)


def bucket_count(n: int, bucket_size: int) -> int:
    """B (§2)."""
    partitions = min(65536, 1 << max(1, n // 16384).bit_length() - 1)
    return ceil_div(ceil_div(n, bucket_size), partitions) * partitions


def distribute(keys: Sequence[bytes], seed: int, buckets: int) -> list[dict[int, tuple[int, bytes]]] | None:
    """{lo: (hi, key)} of every bucket (§2); None if two keys agree in bucket and `lo`."""
    filled: list[dict[int, tuple[int, bytes]]] = [{} for _ in range(buckets)]
    for key in keys:
        hi, lo = hash_key(key, seed)
        filled[hi * buckets >> 64][lo] = hi, key
    return filled if sum(map(len, filled)) == len(keys) else None


def build(
    pairs: Sequence[tuple[bytes, bytes | None]],
    *,
    params: Params,
    bucket_size: int,
    seed: int,
    fingerprint_bits: int,
    kind: int,
    schema: dict[str, Any],
    metadata: Any = None,
) -> bytes:
    """The file of `pairs`, without metadata section if `metadata` is None. ValueError on duplicate keys."""
    check_schema(schema)
    require(1 <= bucket_size <= 65535, "bucket size is not in 1 … 65535")
    require(0 <= fingerprint_bits <= 32, "fingerprint bits are not in 0 … 32")
    require(kind in KINDS, f"unknown kind {kind}")
    values, n = dict(pairs), len(pairs)
    require(len(values) == n, "duplicate keys")
    buckets = bucket_count(n, bucket_size)
    for _ in range(9):
        filled = distribute(list(values), seed, buckets)
        function = None if filled is None else build_function(params, [list(bucket) for bucket in filled])
        if filled is not None and function is not None:
            break
        seed = seed + 1 & M64
    else:
        raise ValueError("no function under nine seeds")
    largest = max(map(len, filled), default=0)
    reader = FunctionReader(params, function, n, buckets, largest)
    order = sorted((reader.index(hi, lo), hi, key) for bucket in filled for lo, (hi, key) in bucket.items())
    require([index for index, *_ in order] == list(range(n)), "no bijection")
    prints = "".join(to_bits(hi, fingerprint_bits) for _, hi, _ in order)
    sections = {
        SCHEMA: to_json(schema),
        TREES: function.trees,
        DIRECTORY: function.directory,
        METADATA: to_json(metadata),
        FINGERPRINTS: pack(prints, ceil_div(len(prints), 8) + 8),
        **encode_values([values[key] for *_, key in order], schema),
        **encode_keys([key for *_, key in order], schema),
    }
    if "scan" in schema:
        sections[SCAN] = encode_prefilter(values)
    kinds = section_kinds(schema, fingerprint_bits, metadata is not None)
    sections[BLOCK_SUMS] = b"".join(block_sums(sections[k]) for k in kinds if k >= FINGERPRINTS)

    table, body, base = b"", b"", HEADER.size + ENTRY.size * len(kinds)
    for k in kinds:
        body += bytes(-(base + len(body)) % 64)
        summed = block_sums(sections[k]) if k >= FINGERPRINTS else sections[k]
        table += ENTRY.pack(k, 0, base + len(body), len(sections[k]), xxh3_64_intdigest(summed))
        body += sections[k]
    shape = METHODS[params.method], params.leaf, *params.fanouts[:2]
    counts = n, seed, buckets, largest, bucket_size, *shape, fingerprint_bits, kind
    chain = 0, 0, 0, 0
    if isinstance(params, chained.Params):
        chain = params.fanouts[2], params.root_bits, params.leaf_room, params.split_room
    fields = MAGIC, 1, len(kinds), 0, base + len(body), 0, *counts, 0, *chain, bytes(50)
    head = bytearray(HEADER.pack(*fields) + table)
    struct.pack_into("<Q", head, 24, xxh3_64_intdigest(bytes(head)))
    return bytes(head) + body
