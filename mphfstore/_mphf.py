"""The bare function: keys to 0 … n - 1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._build import Options, Progress, build_index
from ._format import Kind
from ._handle import Handle, aligned, write
from ._keys import infer_key_type
from ._lookup import Index
from ._native import lib
from ._publish import Memory


class MPHF(Handle, Index):
    """A minimal perfect hash function: the n keys it was built from go one-to-one onto 0 … n - 1.

    It does not know its keys: any other key gets some index below n, too. Method `chained` (the default): FORMAT.md
    §4; `brute`: RecSplit (Esposito, Graf, Vigna 2020); `rotation`: Bez 2022, §5.5."""

    _kind = Kind.MPHF

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        preset: str = "balanced",
        method: str | None = None,
        leaf_size: int | None = None,
        bucket_size: int | None = None,
        key_dtype: Any = None,
        seed: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> MPHF:
        """From an iterable of bytes and str, a numpy array of dtype `S`, `U` or integers, or with `key_dtype` any
        iterable of integers.

        What is given explicitly overrides the preset. Raises DuplicateKeyError, BuildError, TypeError for a key of
        another type."""
        options = Options.of(preset, method, leaf_size, bucket_size, seed=seed, threads=threads, progress=progress)
        kind = infer_key_type(keys, key_dtype)
        memory = Memory()
        write(memory, build_index(kind.batch(keys), kind, options), Kind.MPHF, kind)
        return cls(aligned(memory.data))

    def index_many(self, keys: Iterable[Any]) -> NDArray[np.int64]:
        """`index` of every key: an array of int64."""
        opened, batch = self._current(), self._keys.batch(keys)
        if len(batch) and not len(self):
            raise ValueError("a function of no keys has no index to give")
        return self._batch(opened, batch, lib.mphf_index_batch)
