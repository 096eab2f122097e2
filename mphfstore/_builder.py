"""Collecting records and publishing them as a store."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from ._arrow import is_arrow
from ._columns import PLAIN, Column, Layout, concatenate, value_dtype
from ._compress import check_compression
from ._encoded import is_strings
from ._exact import STORAGE, all_text, place_keys
from ._format import Kind
from ._handle import fingerprint_bits_for, write
from ._index import build_index
from ._keys import BytesKeys, KeyBatch, KeyType, TextKeys, infer_key_type, listed
from ._options import Options, Progress
from ._publish import Publication
from ._scan_filter import section_of
from ._values import column, flatten_one

CHUNK = 1 << 16  # records between two conversions to flat memory
# Default bits where keys are stored, and fingerprints only spare an absent key the way to them. 3 000 000 keys of 25 to
# 32 bytes, one thread: absent keys take 258 in place of 514 ns single and 43 in place of 99 ns in batches, stored ones
# 577 for 547; 3 % more space. An integer lies in a row: one cache line, as a fingerprint.
EXACT_BITS, EXACT_INTEGER_BITS = 8, 0


class Builder:
    """Collects records; a clean end of its block publishes the store, an exception discards it.

    Options are those of `build`. A builder serves once: adding to it outside its block raises ValueError."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        values: Any = "bytes",
        keys: str = "fingerprint",
        key_dtype: Any = None,
        fingerprint_bits: int | None = None,
        false_positive_rate: float | None = None,
        compression: str | None = None,
        dedupe: bool = False,
        scan: bool = False,
        preset: str = "balanced",
        method: str | None = None,
        leaf_size: int | None = None,
        bucket_size: int | None = None,
        on_duplicate: str = "error",
        seed: int | None = None,
        threads: int | None = None,
        backend: str = "auto",
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> None:
        if keys not in STORAGE:
            raise ValueError(f"keys is 'fingerprint' or 'exact', not {keys!r}")
        self._exact, self._all_text = keys == "exact", True
        self._options = Options.of(
            preset, method, leaf_size, bucket_size,
            seed=seed, threads=threads, backend=backend, on_duplicate=on_duplicate, progress=progress,
        )  # fmt: skip
        self._bits = fingerprint_bits_for(fingerprint_bits, false_positive_rate)
        self._kind = values if values is None or is_strings(values) else value_dtype(values)
        self._layout = Layout(dedupe, check_compression(compression))
        if self._layout != PLAIN and not is_strings(values):
            raise ValueError("compression and dedupe are for values of 'bytes', 'str' or 'json'")
        self._scan, self._metadata = scan, metadata
        self._keys: KeyType | None = None if key_dtype is None else infer_key_type((), key_dtype)
        self._publication = Publication(path)
        self._pending: tuple[list[Any], list[Any]] = ([], [])
        self._key_batches: list[KeyBatch] = []
        self._columns: list[Column] = []
        self._collecting = self._used = False

    def __enter__(self) -> Builder:
        if self._used:
            raise ValueError("a builder serves once: make a new one")
        self._used = True
        self._publication.__enter__()
        self._collecting = True
        return self

    def add(self, key: object, value: object = None) -> None:
        """One record; without a value in a store of no values. Values of a dtype are faster through `add_many`.
        Raises TypeError for a key or value of another
        type."""
        self._check_collecting()
        if (value is None) != (self._kind is None) and self._kind != "json":  # whose null is a value
            raise TypeError("this store has no values" if self._kind is None else "a value is missing")
        if self._keys is None:
            self._keys = BytesKeys()
        # Both are checked, and copied where they can change, before either is taken.
        raw, one = self._keys.one(key), flatten_one(value, self._kind)
        self._all_text = self._all_text and isinstance(key, str)
        keys, values = self._pending
        keys.append(raw)
        values.append(one)
        if len(keys) >= CHUNK:
            self._flush()

    def add_many(self, keys: Iterable[Any], values: Iterable[Any] | None = None) -> None:
        """Records from keys and values of one length: numpy arrays, arrays of the Arrow C data interface (pyarrow,
        polars …), or other iterables. Memory of Arrow arrays is used in place: it must not change before the end.

        Raises TypeError for keys or values of another type, ValueError for nulls or if the lengths differ."""
        self._check_collecting()
        self._flush()
        if (values is None) != (self._kind is None):
            raise TypeError("this store has no values" if self._kind is None else "values are missing")
        keys = listed(keys)
        if self._keys is None:
            self._keys = infer_key_type(keys)
        if self._exact:
            text = all_text(keys)
        # arrays are flattened in place, and theirs may change before the end
        batch = self._keys.batch(keys.copy() if isinstance(keys, np.ndarray) else keys)
        values = values.copy() if isinstance(values, np.ndarray) else values
        part = column(values, self._kind, len(batch))
        if len(part) != len(batch):
            raise ValueError(f"{len(batch)} keys, but {len(part)} values")
        self._key_batches.append(batch)
        self._columns.append(part)
        self._all_text = self._all_text and self._exact and text

    def _flush(self) -> None:
        keys, values = self._pending
        self._pending = ([], [])
        if keys:
            self._key_batches.append(BytesKeys().batch(keys))
            self._columns.append(column(values, "bytes" if is_strings(self._kind) else self._kind, len(keys)))

    def _check_collecting(self) -> None:
        if not self._collecting:
            raise ValueError("a builder takes records inside its `with` block only, and only once")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._collecting = False
        try:
            if error is None:
                self._write()
        except BaseException as failure:
            self._publication.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._publication.__exit__(kind, error, trace)

    def _write(self) -> None:
        self._flush()
        keys, values = KeyBatch.concatenate(self._key_batches), concatenate(self._columns, self._kind)
        self._key_batches, self._columns = [], []
        key_type = self._keys or BytesKeys()
        if self._exact and self._all_text and len(keys) and key_type.text:
            key_type = TextKeys()
        index = build_index(keys, key_type, self._options)
        bits = self._bits
        if bits is None:
            bits = 16 if not self._exact else EXACT_INTEGER_BITS if key_type.size else EXACT_BITS
        write(
            self._publication, index, Kind.STORE, key_type,
            fingerprint_bits=bits, values=values.place(index.records, self._layout),
            stored=place_keys(keys, key_type, index.records) if self._exact else None,
            prefilter=section_of([keys]) if self._scan else None, metadata=self._metadata,
        )  # fmt: skip


def build(path: str | os.PathLike[str], items: Any, **options: Any) -> None:
    """Builds a store file and publishes it: it appears whole or not at all.

    items: a mapping; an iterable of (key, value) pairs; or a tuple (keys, values) of two columns of one length –
    lists, numpy arrays or arrays of the Arrow C data interface (pyarrow, polars …; without nulls). With
    `values=None` just keys: a list, an array or any iterable.

    values: "bytes" (also bytearray, memoryview), "str", "json" (what `json` can write, without NaN and infinities), a
    numpy dtype without objects, or None. keys: "fingerprint", or "exact" to store the keys themselves: then no look-up
    is ever wrong, and the store is a Mapping, whose keys come back as `str` if all were given as such, else as bytes.
    fingerprint_bits: 0 … 32, by default 16; an absent key is
    taken for a stored one with probability 2^-fingerprint_bits. With exact keys, by default 8 and for integers 0, they
    only make look-ups of absent keys quicker. false_positive_rate: in place of them, the highest
    such probability, 2^-32 … 1. compression: "zstd" for values of "bytes", "str" and "json", which needs
    zstandard. dedupe: such values, if they are equal, are stored once where that takes less space. scan: adds
    the prefilter that `mphfstore.scan` needs to find the keys anywhere in a text, some 3 bytes a key of a
    million, more a key of fewer. key_dtype: a numpy integer dtype if the keys are integers (an
    integer array of keys declares its own); else keys are bytes or str. preset: one of `mphfstore.PRESETS`; method,
    leaf_size and bucket_size
    override it. on_duplicate: "error", or which record of a key to keep, "first" or "last"; "list" is an error that
    names every repeated key. seed: 64 bits, for the
    same bytes every time;
    random by default. threads: as many as there are processors by default. backend: "native", "cuda" or "opencl";
    "auto" is native code unless the keys are a million or more and there is a GPU. The bytes are the same.
    metadata: anything JSON can hold, for
    `info()`.
    progress: called with (keys built, all keys).

    Raises DuplicateKeyError, BuildError, UnavailableError (compression without zstandard), TypeError, ValueError or
    OverflowError for keys and values that do not fit, OSError for a target that cannot be written. After any failure an
    existing target is unchanged."""
    with Builder(path, **options) as builder:
        kind = options.get("values", "bytes")
        if isinstance(items, tuple) and len(items) == 2 and all(map(_is_column, items)):
            builder.add_many(*items)
        elif kind is None:
            builder.add_many(items.keys() if isinstance(items, Mapping) else items)
        else:
            pairs = iter(items.items() if isinstance(items, Mapping) else items)
            for first in itertools.count(step=CHUNK):
                chunk = list(itertools.islice(pairs, CHUNK))
                if not chunk:
                    break
                builder.add_many(*_columns_of(chunk, first))


def _is_column(part: object) -> bool:
    return isinstance(part, list | np.ndarray) or is_arrow(part)


def _columns_of(pairs: list[Any], first: int) -> tuple[list[Any], list[Any]]:
    """Keys and values of (key, value) pairs; TypeError naming the record that is none."""
    try:
        if not {str, bytes} & set(map(type, pairs)):  # two characters would pass for a pair
            return [key for key, _ in pairs], [value for _, value in pairs]
    except (TypeError, ValueError):
        pass
    for position, pair in enumerate(pairs, first):
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            hint = "; keys without values take values=None"
            raise TypeError(f"record {position} is not a (key, value) pair: {pair!r:.100}{hint}")
    raise TypeError("records are (key, value) pairs")
