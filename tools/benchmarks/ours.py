"""Our own stores, two per preset, and filters, one per preset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mphfstore as ms

from .subject import Filter, Handle, Store
from .workload import fixed_width


class BytesStore(Store):
    """From two lists; values are bytes, as in most peers."""

    module = distribution = "mphfstore"
    absent = "probable"
    lookup = "store.get(key)"
    ours = True
    values = "bytes"

    def __init__(self, preset: str, threads: int) -> None:
        self.name, self.preset, self._threads = f"mphfstore {preset}", preset, threads

    def build(self, work: Any, path: Path) -> None:
        self._build(path, (work.keys, work.values))

    def _build(self, path: Path, records: tuple[Any, Any]) -> None:
        ms.build(path, records, values=self.values, preset=self.preset, threads=self._threads, seed=1)

    def open(self, path: Path) -> Handle:
        store: Any = ms.open(path)
        return Handle(store.get, store, {"batch_bytes": store.get_many}, store.close)

    def details(self, path: Path) -> dict[str, Any]:
        with ms.open(path) as store:
            info = store.info()
        kept = ("method", "leaf_size", "bucket_size", "fingerprint_bits", "bits_per_key", "sections")
        return {"preset": self.preset, "values": self.values, **{name: info[name] for name in kept}}


class ArrayStore(BytesStore):
    """From two arrays; values are integers of a numpy dtype, and batches of them arrays."""

    values = "<u8"

    def __init__(self, preset: str, threads: int) -> None:
        super().__init__(preset, threads)
        self.name += " array"

    def build(self, work: Any, path: Path) -> None:
        self._build(path, (fixed_width(work.keys), work.numbers))

    def open(self, path: Path) -> Handle:
        store: Any = ms.open(path)
        return Handle(store.get, store, dict.fromkeys(("batch_list", "batch_array"), store.get_many), store.close)

    def number(self, found: Any) -> int:
        return int(found)


class OurFilter(Filter):
    module = distribution = "mphfstore"
    ours = True

    def __init__(self, preset: str, threads: int) -> None:
        self.name, self._preset, self._threads = f"mphfstore {preset}", preset, threads

    def build(self, work: Any, bits: int) -> Any:
        return ms.Filter.build(work.keys, fingerprint_bits=bits, preset=self._preset, threads=self._threads, seed=1)

    def size(self, built: Any) -> int:
        return len(built.to_bytes())

    def contains_many(self, built: Any) -> Callable[[Any], Any]:
        call: Callable[[Any], Any] = built.contains_many
        return call

    def details(self, built: Any) -> dict[str, Any]:
        return {"preset": self._preset, "function_bits_per_key": round(built.bits_per_key, 4)}


def stores(threads: int) -> list[Store]:
    return [kind(preset, threads) for kind in (BytesStore, ArrayStore) for preset in ms.PRESETS]


def filters(threads: int) -> list[Filter]:
    return [OurFilter(preset, threads) for preset in ms.PRESETS]
