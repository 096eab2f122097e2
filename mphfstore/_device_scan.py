"""Scans on a device (cuda/occurrences.h): the text goes there piece by piece, occurrences come back."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._device import Session
from ._device_keys import Sender
from ._device_lookup import function_buffers, kernel_name
from ._errors import sound
from ._native import lib
from ._scan_filter import Prefilter
from ._scan_patterns import Dictionary, Single

PIECE = 1 << 26  # bytes of the text in which the keys of a launch begin
ROOM = 1 << 16  # occurrences, and one for every eight bytes
STAGED = 4096  # bytes of a pattern in local memory
ITEMS = 64  # of a work-group

Offsets = NDArray[np.int64]


class DeviceScan:
    """Patterns on a device. widths: of windows; none: keys anywhere."""

    def __init__(self, session: Session, of: Dictionary | Single, widths: list[int] | None) -> None:
        self._session, self._of = session, of
        self._text, self._sending = Sender(session), threading.Lock()
        device = session.device
        if isinstance(of, Single):
            self._longest = len(of.pattern)
            staged = min(len(of.pattern), STAGED)
            self._kernel, self._local = session.kernels.scan_pattern, -(-staged // 8) * 8
            self._piece_bytes = PIECE
            pattern = device.upload(np.frombuffer(of.pattern, np.uint8))
            self._given: tuple[Any, ...] = pattern, np.uint64(len(of.pattern)), np.uint32(staged)
            return
        prefilter: Prefilter | None = of.prefilter() if widths is None else of.known_prefilter()
        section = b"" if prefilter is None else prefilter.section
        filter = device.upload(np.frombuffer(section, np.uint8)), np.uint64(len(section))
        file = of.opened.whole()[1]
        name = kernel_name("scan_anywhere" if widths is None else "scan_windows", file.header)
        self._kernel, self._local = getattr(session.kernels, name), 0
        self._given = (*function_buffers(session, file), *filter)
        if widths is None:
            assert prefilter is not None
            self._longest, lengths = prefilter.longest, lib.mphf_scan_lengths(prefilter.native)
        else:
            self._longest, lengths = widths[-1], len(widths)
            self._given += device.upload(np.array(widths, np.uint64)), np.uint32(len(widths))
        self._piece_bytes = max(1, min(PIECE, (1 << 31) // lengths))  # all of which might be found

    def find(self, data: NDArray[np.uint8], end: int) -> tuple[Offsets, Offsets, Offsets]:
        """Start, length and index of all occurrences that begin before `end`, by start, then length."""
        if isinstance(self._of, Single):
            end = min(end, max(0, len(data) - self._longest + 1))
        elif not len(self._of):
            end = 0
        found: list[tuple[Offsets, ...]] = [(np.empty(0, np.int64),) * 3]
        for begin in range(0, end, self._piece_bytes):
            size = min(self._piece_bytes, end - begin)
            text = data[begin : begin + size + min(self._longest - 1, len(data))]
            start, length, index = self._piece(text, size)
            order = np.lexsort((length, start))
            found.append((start[order] + begin, length[order], index[order]))
        start, length, index = (np.concatenate(column) for column in zip(*found, strict=True))
        return start, length, index

    def _piece(self, text: NDArray[np.uint8], size: int) -> list[Offsets]:
        """The same of the places before `size`, in any order."""
        with self._sending:  # another thread's text would come between this one and its kernel
            return self._searched(self._text.send(text), text, size)

    def _searched(self, there: Any, text: NDArray[np.uint8], size: int) -> list[Offsets]:
        device = self._session.device
        lengths = () if isinstance(self._of, Single) else (np.uint64(len(text)),)
        groups = max(1, min(-(-size // ITEMS), 64 * device.units))
        count, room = np.empty(1, np.uint32), ROOM + size // 8
        while True:
            counter, columns = device.zeros(4), [device.empty(8 * room) for _ in range(3)]
            device.launch(
                self._kernel, groups, ITEMS, self._local, *self._given, there, *lengths, np.uint64(size),
                counter, np.uint32(room), *columns,
            )  # fmt: skip
            device.download(counter, count)
            if count[0] <= room:
                break
            room = int(count[0])
        hits = [np.empty(int(count[0]), np.int64) for _ in range(3)]
        for column, here in zip(columns, hits, strict=True):
            device.download(column, here)
        if (hits[2] == lib.STATUS_CORRUPT).any():
            sound(lib.STATUS_CORRUPT)
        return hits
