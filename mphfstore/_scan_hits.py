"""Hits of scans: as users have them, and as native calls append them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._native import ffi, lib
from ._scan_text import Bytes, at_borders, code_points

Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hits:
    """Occurrences in a text, by start, then length: three arrays of int64.

    start, length: in the text, in bytes; in a `str`, in code points. index: of the key in its store or filter; of a
    pattern, its position in what was given. false_positive_rate: the probability with which a stretch of the text
    that is no key and is looked up passes for one; 0.0 where every hit was compared with its key."""

    start: Offsets
    length: Offsets
    index: Offsets
    false_positive_rate: float = 0.0

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Offsets:
        """Where each occurrence ends."""
        return self.start + self.length

    @property
    def probable(self) -> bool:
        """Whether hits may be false: the dictionary has fingerprints of its keys alone."""
        return self.false_positive_rate > 0


def joined(parts: list[Hits], rate: float) -> Hits:
    """All of them, one part behind the other."""
    if len(parts) == 1:
        return parts[0]
    start, length, index = (
        np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in parts)])
        for name in ("start", "length", "index")
    )
    return Hits(start, length, index, rate)


def as_code_points(hits: Hits, data: Bytes) -> Hits:
    """With offsets in code points of the text; without those that begin or end within one."""
    whole = at_borders(data, hits.start) & at_borders(data, hits.end)
    start, end = hits.start[whole], hits.end[whole]
    order = np.argsort(end, kind="stable")
    ends = np.empty(len(end), np.int64)
    ends[order] = code_points(data, end[order])
    start = code_points(data, start)
    return Hits(start, ends - start, hits.index[whole], hits.false_positive_rate)


class Found:
    """Hits as native calls append them: in arrays that grow where they lie, for copying millions of hits, and the pages
    that takes, costs as much as finding them. Pages of the first room that are not used are never there.

    room: for so many hits at first. numbers: what their indices become, if not None."""

    def __init__(self, room: int, numbers: NDArray[np.int64] | None) -> None:
        self._columns = [np.empty(max(room, lib.SCAN_ROOM), np.int64) for _ in range(3)]
        self._numbers = None if numbers is None else ffi.from_buffer("int64_t[]", numbers)
        self.native = ffi.new("scan_hits *")
        self.native.numbers = ffi.NULL if self._numbers is None else self._numbers
        self._point()

    def _point(self) -> None:
        native = self.native
        native.start, native.length, native.index = (
            ffi.cast("int64_t *", column.ctypes.data) for column in self._columns
        )
        native.capacity = len(self._columns[0])

    def _resize(self, room: int) -> None:
        for column in self._columns:
            column.resize(room, refcheck=False)  # nobody else has seen it
        self._point()

    def grow(self) -> None:
        self._resize(2 * len(self._columns[0]))

    def hits(self, rate: float) -> Hits:
        """Of the arrays what is used. Nothing may be appended afterwards."""
        self._resize(self.native.count)
        start, length, index = self._columns
        return Hits(start, length, index, rate)
