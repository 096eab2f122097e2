"""The key-value store: look-ups of values in a mapped file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._format import Kind
from ._handle import Membership
from ._keys import listed
from ._lookup import Items
from ._native import lib
from ._values import flatten_one

_MISSING: Any = object()


class Store(Membership, Items):
    """A static key-value store in one mapped file.

    A key that was stored is always found. A key that was not is taken for a stored one – with that one's value –
    with probability
    2^-fingerprint_bits, for the keys themselves are not kept. Values are `bytes`, or numpy scalars (records) of the
    store's dtype. `store[key]` raises KeyError for an absent key, TypeError for what is no key of this store's
    kind."""

    _kind = Kind.STORE

    def get_many(self, keys: Iterable[Any], default: Any = _MISSING) -> Any:
        """The values of a batch of keys, in its order: an array of the store's dtype, or a list of bytes.

        Absent keys have `default`; without one they raise KeyError, which names the first."""
        opened, batch = self._current(), listed(keys)
        if opened.file.schema.get("values") is None:
            raise TypeError("this store has no values; use contains_many")
        indices = self._find_many(opened, batch)
        absent = indices < 0
        if default is _MISSING and absent.any():
            raise KeyError(batch[int(np.argmax(absent))])
        values = opened.values
        if values is not None:
            if not absent.any():
                return values[indices]
            out = np.empty(len(batch), values.dtype)
            out[~absent] = values[indices[~absent]]
            out[absent] = flatten_one(default, values.dtype)  # TypeError and the like if it does not fit
            return out
        return opened.value_list_at(indices, default)

    def get_view(self, key: Any) -> memoryview:
        """The value's bytes where they lie in the file, without a copy (mode "pread": as they were read): a read-only
        view, which keeps the mapping. Raises KeyError, and TypeError unless the store's values are bytes."""
        opened = self._current()
        if opened.file.schema.get("values") != "bytes":
            raise TypeError("values of this store are not bytes; values_array shows those of a numpy dtype")
        index = opened.find(key)
        if index == lib.ABSENT:
            raise KeyError(key)
        view: memoryview = opened.view(index)
        return view

    def values_array(self) -> NDArray[Any]:
        """All values in index order, without a copy: a read-only array on the mapping, which it keeps; in mode "pread"
        they are read into memory. TypeError unless the store's values have a numpy dtype."""
        opened = self._current()
        if opened.values is None:
            raise TypeError("values of this store are bytes, not of a numpy dtype")
        values: NDArray[Any] = opened.array()
        return values
