"""Views into a mapping that others hold."""

from __future__ import annotations

import itertools
import weakref

import numpy as np


class Lent:
    """Counts the views that are alive: each is on an array of its own, which goes with the last slice of the view."""

    def __init__(self) -> None:
        self._alive: dict[int, weakref.ref[object]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._alive)

    def view(self, part: memoryview) -> memoryview:
        """A view of some bytes, counted as long as anything refers to it."""
        piece, alive, number = np.frombuffer(part, np.uint8), self._alive, next(self._numbers)

        def gone(_: object) -> None:
            alive.pop(number, None)

        alive[number] = weakref.ref(piece, gone)
        return piece.data
