"""The filters of others."""

from __future__ import annotations

import sys
from typing import Any

from .subject import Filter


class Set(Filter):
    """No filter, but what one would use without: the exact set, in memory."""

    name = "set"

    def build(self, work: Any, bits: int) -> Any:
        return set(work.key_list)

    def size(self, built: Any) -> int:
        return sys.getsizeof(built) + sum(map(sys.getsizeof, built))


class RBloom(Filter):
    """A Bloom filter with as many bits as its false-positive rate of 2^-bits asks for."""

    name = module = distribution = "rbloom"

    def build(self, work: Any, bits: int) -> Any:
        import rbloom

        bloom = rbloom.Bloom(len(work.key_list), 2.0**-bits)
        bloom.update(work.key_list)
        return bloom

    def size(self, built: Any) -> int:
        return -(-int(built.size_in_bits) // 8)


class PyFuseFilter(Filter):
    """Binary fuse filters, of 8 or 16 bits. Needs xxhash below 4: see `--python` if that does not suit others."""

    name = module = distribution = "pyfusefilter"

    def refuses(self, bits: int) -> str | None:
        return None if bits in (8, 16) else f"has fingerprints of 8 or 16 bits, not {bits}"

    def build(self, work: Any, bits: int) -> Any:
        import pyfusefilter

        return (pyfusefilter.Fuse8 if bits == 8 else pyfusefilter.Fuse16)(work.key_list)

    def size(self, built: Any) -> int:
        return len(built.serialize())


FILTERS: tuple[Filter, ...] = (Set(), RBloom(), PyFuseFilter())
