"""The approximate membership filter: fingerprints at the indices, no values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._format import Kind
from ._handle import Membership, fingerprint_bits_for, write
from ._index import build_index
from ._keys import infer_key_type, listed
from ._options import Options, Progress
from ._publish import Memory
from ._scan_filter import section_of
from ._source import aligned


class Filter(Membership):
    """A set of keys that answers `in`: always yes for a key of the set, and for any other with probability
    2^-fingerprint_bits."""

    _kind = Kind.FILTER

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        fingerprint_bits: int | None = None,
        false_positive_rate: float | None = None,
        preset: str = "balanced",
        method: str | None = None,
        leaf_size: int | None = None,
        bucket_size: int | None = None,
        key_dtype: Any = None,
        on_duplicate: str = "first",
        scan: bool = False,
        seed: int | None = None,
        threads: int | None = None,
        backend: str = "auto",
        progress: Progress | None = None,
    ) -> Filter:
        """From keys as `MPHF.build` takes them. A key given twice is one key of the set, unless
        `on_duplicate="error"`. fingerprint_bits: 0 … 32, 8 if not given; or false_positive_rate, 2^-32 … 1, the highest
        at which absent keys pass. scan: as in `mphfstore.build`."""
        options = Options.of(
            preset, method, leaf_size, bucket_size,
            seed=seed, threads=threads, backend=backend, on_duplicate=on_duplicate, progress=progress,
        )  # fmt: skip
        bits = fingerprint_bits_for(fingerprint_bits, false_positive_rate)
        keys = listed(keys)
        kind = infer_key_type(keys, key_dtype)
        batch, memory = kind.batch(keys), Memory()
        write(
            memory,
            build_index(batch, kind, options),
            Kind.FILTER,
            kind,
            fingerprint_bits=8 if bits is None else bits,
            prefilter=section_of([batch]) if scan else None,
        )
        return cls(aligned(memory.data))
