"""The bare function: keys to 0 … n - 1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._batch import apart, checked_out, look_up
from ._format import Kind
from ._handle import Handle, write
from ._index import build_index
from ._keys import Parts, infer_key_type, listed
from ._lookup import Index
from ._options import Options, Progress
from ._publish import Memory
from ._source import aligned


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
        backend: str = "auto",
        progress: Progress | None = None,
    ) -> MPHF:
        """From an iterable of bytes and str, a numpy array (`S`, `U`, `StringDType`, integers), an array of the Arrow
        C data interface (strings, integers; no nulls), or with `key_dtype` any iterable of integers.

        What is given explicitly overrides the preset. Raises DuplicateKeyError, BuildError, TypeError for a key of
        another type."""
        options = Options.of(
            preset, method, leaf_size, bucket_size, seed=seed, threads=threads, backend=backend, progress=progress
        )
        keys = listed(keys)
        kind = infer_key_type(keys, key_dtype)
        memory = Memory()
        write(memory, build_index(kind.batch(keys), kind, options, records=False), Kind.MPHF, kind)
        return cls(aligned(memory.data))

    def index_many(
        self, keys: Iterable[Any], *, out: NDArray[np.int64] | None = None, threads: int | None = None
    ) -> NDArray[np.int64]:
        """`index` of every key of a batch: an array of int64, one per key.

        keys: a batch as `build` takes it. out: an array for the result, which is returned: contiguous, writeable, of
        this dtype and length. threads: by default as many as pay.

        Raises TypeError, OverflowError or ValueError for what can be no key, TypeError or ValueError for an `out`
        that does not fit, ValueError for a function of no keys."""
        opened = self._current()
        parts = Parts([opened.keys.batch(keys)])
        if parts.count and not opened.file.header.keys:
            raise ValueError("a function of no keys has no index to give")
        indices = checked_out(out, parts.count, np.int64)
        look_up(opened.index_batch, apart(parts, indices), threads, into=indices)
        return indices
