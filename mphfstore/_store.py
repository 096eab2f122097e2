"""The key-value store: look-ups of values in a mapped file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrow import Columns
from ._arrow_values import arrow_values
from ._batch import found, gathered
from ._format import Kind
from ._handle import Membership
from ._keys import listed
from ._lookup import Items
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

    def get_many(
        self,
        keys: Iterable[Any],
        default: Any = _MISSING,
        *,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The values of a batch of keys, in its order: an array of the store's dtype, or a list of bytes.

        Absent keys have `default`; without one they raise KeyError, which names the first. `keys`, `out` (for values
        of a dtype; after an exception its contents mean nothing) and `threads` as `index_many` has them."""
        opened, batch = self._current(), listed(keys)
        if opened.file.schema.get("values") is None:
            raise TypeError("this store has no values; use contains_many")
        parts = self._keys.parts(batch)
        if opened.values is not None:
            fill = None if default is _MISSING else partial(flatten_one, default, opened.values.dtype)
            values, absent = gathered(opened, parts, fill, out, threads)
        elif out is not None:
            raise TypeError("out is for values of a numpy dtype; this store's are bytes")
        else:
            indices = found(opened, parts, threads)
            absent = None if default is not _MISSING or np.all(indices >= 0) else int(np.argmax(indices < 0))
        if absent is not None:
            raise KeyError(batch.element(absent) if isinstance(batch, Columns) else batch[absent])
        return values if opened.values is not None else opened.value_list_at(indices, default)

    def get_arrow(self, keys: Iterable[Any], *, threads: int | None = None) -> Any:
        """The values of a batch of keys as a `pyarrow.Array` in its order, null where a key is absent.

        Values that are bytes make a `large_binary` array, those of a numpy dtype one of the type that is the same in
        Arrow: a `struct` for records, `large_binary` for `S`, `large_string` for `U`. `keys` and `threads` as
        `index_many` has them.

        Raises UnavailableError without pyarrow, TypeError for a dtype that Arrow does not have."""
        opened = self._current()
        if opened.file.schema.get("values") is None:
            raise TypeError("this store has no values; use contains_many")
        return arrow_values(opened, found(opened, self._keys.parts(keys), threads), threads)

    def values_array(self) -> NDArray[Any]:
        """All values in index order, without a copy: a read-only array on the mapping, which it keeps. TypeError
        unless the store's values have a numpy dtype."""
        values: NDArray[Any] | None = self._current().values
        if values is None:
            raise TypeError("values of this store are bytes, not of a numpy dtype")
        return values
