"""All subjects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .filters import FILTERS
from .peers import STORES
from .subject import Subject


class Absent(Subject):
    """Stands for all of ours in an interpreter for peers, so that they are reported as skipped."""

    name = module = "mphfstore"


def subjects(benchmark: str, threads: int) -> list[Any]:
    """Of "store" or "filter": ours, if this interpreter has mphfstore, then the peers."""
    peers: Sequence[Any] = {"store": STORES, "filter": FILTERS}[benchmark]
    try:
        from . import ours
    except ImportError:
        return [Absent(), *peers]
    own: dict[str, Callable[[int], list[Any]]] = {"store": ours.stores, "filter": ours.filters}
    return [*own[benchmark](threads), *peers]
