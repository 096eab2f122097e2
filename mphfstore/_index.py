"""Building the function of some keys: on devices or natively, under one seed after another, without repeated keys."""

from __future__ import annotations

import secrets
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from . import _build
from ._build import Index, Words
from ._device import chosen
from ._errors import BuildError, DuplicateKeyError
from ._keys import KeyBatch, KeyType
from ._options import Options, Progress

SEEDS = 9  # the first and eight retries


def build_index(keys: KeyBatch, key_type: KeyType, options: Options, *, records: bool = True) -> Index:
    """records: whether the index is to have them. Raises DuplicateKeyError by policy, BuildError if no seed of nine
    serves, MemoryError; KeyboardInterrupt stops all threads. UnavailableError, and whatever a driver raises, where a
    device was asked for; with backend "auto", native code takes over, with a warning."""
    sessions = chosen(options.backend, len(keys))
    first_seed = secrets.randbits(64) if options.seed is None else options.seed
    kept: Words | None = None  # records that remain after duplicates were dropped
    attempt = 0
    while attempt < SEEDS:
        seed = (first_seed + attempt) % (1 << 64)
        hashes = None
        try:
            if sessions and len(keys):
                from ._device_build import build_on  # what it brings would cost every start

                index = build_on(
                    sessions, keys, seed, replace(options, progress=_told(options.progress)), records=records
                )
            else:
                hashes = _build.hash_batch(keys, seed)
                index = _build.build_hashed(*hashes, seed, options)
        except _build._Unsolved:
            unique = _unique_records(keys, key_type, *(hashes or _build.hash_batch(keys, seed)), options.on_duplicate)
            if unique is None:
                attempt += 1
            else:  # begin again as if only these had been given
                keys, attempt = keys.take(unique), 0
                kept = unique if kept is None else kept[unique]
            continue
        except _FromProgress as error:
            raise error.args[0] from None
        except Exception as error:
            if not sessions or options.backend != "auto":
                raise
            warnings.warn(f"{sessions[0].device.name}: {error}; native code builds instead", RuntimeWarning, 2)
            sessions = []
            continue
        if kept is not None and records:
            index = Index(**{**index.__dict__, "records": kept[index.records]})
        return index
    raise BuildError(
        f"no function found for {len(keys)} distinct keys with {SEEDS} seeds from {first_seed} on: "
        f"are buckets of {options.bucket_size} keys too large, or were the keys chosen to collide?"
    )


class _FromProgress(Exception):
    """What `progress` has raised: not a device's failure."""


def _told(progress: Progress | None) -> Progress | None:
    if progress is None:
        return None

    def tell(done: int, all: int) -> None:
        try:
            progress(done, all)
        except Exception as error:
            raise _FromProgress(error) from None

    return tell


def _unique_records(keys: KeyBatch, key_type: KeyType, hi: Words, lo: Words, policy: str) -> Words | None:
    """The records that remain if each key is kept once; None if all keys differ. Raises DuplicateKeyError by
    policy."""
    order = np.lexsort((lo, hi))  # stable: equal hashes in input order
    same = (hi[order][1:] == hi[order][:-1]) & (lo[order][1:] == lo[order][:-1])
    dropped, repetition = [], None
    repeated: dict[Any, list[int]] = {}
    runs = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    for begin, end in runs.reshape(-1, 2):
        kept: dict[bytes, int] = {}
        for record in map(int, order[begin : end + 1]):
            key = keys[record]
            if key not in kept:
                kept[key] = record
                continue
            if repetition is None or record < repetition[1]:
                repetition = kept[key], record
            if policy == "error":
                break  # later ones of this key repeat later
            if policy == "list":
                repeated.setdefault(key_type.decode(key), [kept[key]]).append(record)
                continue
            dropped.append(kept[key] if policy == "last" else record)
            if policy == "last":
                kept[key] = record
    if repetition is None:
        return None
    if policy in ("error", "list"):
        raise DuplicateKeyError(key_type.decode(keys[repetition[1]]), repetition, repeated)
    remain = np.ones(len(keys), bool)
    remain[dropped] = False
    return np.flatnonzero(remain).astype(np.uint64)
