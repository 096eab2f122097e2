"""The key-value store: look-ups of values in a mapped file."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from . import _views
from ._arrow import Columns
from ._arrow_values import arrow_values
from ._batch import found, gathered
from ._errors import FormatError
from ._format import File, Kind, Section
from ._handle import Membership
from ._keys import listed
from ._lookup import Items
from ._native import lib
from ._opened import Opened
from ._source import Source
from ._values import flatten_one

_MISSING: Any = object()


class Store(Membership, Items):
    """A static key-value store in one mapped file.

    A key that was stored is always found. Unless the keys themselves are stored (`keys="exact"`: then the store is an
    `ExactStore`), a key that was not is taken for a stored one – with that one's value – with probability
    2^-fingerprint_bits. Values are `bytes`, `str`, what JSON holds, or numpy scalars (records) of the store's dtype.
    `store[key]` raises KeyError for an absent key, TypeError for what is no key of this store's kind."""

    _kind = Kind.STORE

    def get_many(
        self,
        keys: Iterable[Any],
        default: Any = _MISSING,
        *,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The values of a batch of keys, in its order: an array of the store's dtype, else a list.

        Absent keys have `default`; without one they raise KeyError, which names the first. `keys`, `out` (for values
        of a dtype; after an exception its contents mean nothing) and `threads` as `index_many` has them."""
        opened, batch = self._current(), listed(keys)
        if opened.file.schema.get("values") is None:
            raise TypeError("this store has no values; use contains_many")
        parts = opened.keys.parts(batch)
        if opened.values is not None:
            fill = None if default is _MISSING else partial(flatten_one, default, opened.values.dtype)
            values, absent = gathered(opened, parts, fill, out, threads)
        elif out is not None:
            raise TypeError("out is for values of a numpy dtype, which this store's are not")
        else:
            indices = found(opened, parts, threads)
            absent = None if default is not _MISSING or np.all(indices >= 0) else int(np.argmax(indices < 0))
        if absent is not None:
            raise KeyError(batch.element(absent) if isinstance(batch, Columns) else batch[absent])
        return values if opened.values is not None else opened.value_list_at(indices, default)

    def get_arrow(self, keys: Iterable[Any], *, threads: int | None = None) -> Any:
        """The values of a batch of keys as a `pyarrow.Array` in its order, null where a key is absent.

        `bytes` make a `large_binary` array, `str` and the text of JSON a `large_string` array, values of a numpy dtype
        one of the type that is the same in Arrow: a `struct` for records, `large_binary` for `S`, `large_string` for
        `U`. `keys` and `threads` as `index_many` has them.

        Raises UnavailableError without pyarrow, TypeError for a dtype that Arrow does not have."""
        opened = self._current()
        if opened.file.schema.get("values") is None:
            raise TypeError("this store has no values; use contains_many")
        return arrow_values(opened, found(opened, opened.keys.parts(keys), threads), threads)

    def get_view(self, key: Any) -> memoryview:
        """The value's bytes where they lie in the file, without a copy (as they were read in mode "pread", decompressed
        from a compressed store): a read-only view, which keeps the mapping. Raises KeyError, and TypeError unless the
        store's values are bytes."""
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
            raise TypeError("values of this store are not of a numpy dtype")
        values: NDArray[Any] = opened.array()
        return values

    def values_at(self, indices: Any) -> Any:
        """The values at indices, as `index_many` or the hits of a scan have them: an array of the store's dtype, else
        a list. Raises IndexError for an index that is none, -1 of an absent key, too."""
        opened = self._values_of(self._current())
        chosen = self._checked(indices, opened)
        if opened.values is None:
            return opened.value_list_at(chosen, None)
        values = np.empty(len(chosen), opened.values.dtype)
        opened.take(chosen, values)
        return values

    def keys_at(self, indices: Any) -> list[Any]:
        """The keys at indices, likewise. TypeError unless they are stored: `keys="exact"`."""
        opened = self._keys_of(self._current())
        return [opened.key_list(index, index + 1)[0] for index in self._checked(indices, opened).tolist()]

    def _checked(self, indices: Any, opened: Opened) -> NDArray[np.int64]:
        chosen = np.asarray(indices)
        if chosen.ndim != 1 or (len(chosen) and chosen.dtype.kind not in "iu"):
            raise TypeError("indices are integers in one dimension")
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= opened.file.header.keys):
            raise IndexError(f"an index is 0 to {opened.file.header.keys - 1} here")
        return np.ascontiguousarray(chosen, np.int64)

    def __iter__(self) -> Iterator[Any]:
        return self._each_key()

    def keys(self) -> KeysView[Any]:
        """The keys in the order of their indices, as a view. TypeError unless they are stored: `keys="exact"`."""
        self._keys_of(self._current())
        return _views.Keys(self)

    def values(self) -> ValuesView[Any]:
        """The values in the order of their keys' indices, as a view. TypeError if there are none."""
        self._values_of(self._current())
        return _views.Values(self)

    def items(self) -> ItemsView[Any, Any]:
        """(key, value) pairs in the order of the keys' indices, as a view. TypeError unless there are both."""
        opened = self._current()
        self._keys_of(opened)
        self._values_of(opened)
        return _views.Items(self)

    def keys_array(self) -> NDArray[Any]:
        """All keys in index order, without a copy: a read-only array on the mapping, which it keeps; in mode "pread"
        they are read into memory.

        Integers have their dtype, byte strings of one width and `str` of one width in UTF-8 that of `S`, where numpy
        does not count trailing NULs. TypeError for keys of different widths, or if they are not stored."""
        array: NDArray[Any] = self._keys_of(self._current()).key_array()
        return array

    def _keys_of(self, opened: Opened) -> Opened:
        if opened.file.schema.get("keys") != "exact":
            raise TypeError(
                "this store does not have its keys, only fingerprints of them: build it with keys='exact' to iterate"
            )
        return opened

    def _values_of(self, opened: Opened) -> Opened:
        if opened.file.schema.get("values") is None:
            raise TypeError("this store has no values")
        return opened

    def _each_key(self) -> Iterator[Any]:
        return _keys_in(self._keys_of(self._current()))

    def _each_value(self) -> Iterator[Any]:
        return _values_in(self._values_of(self._current()))

    def _each_item(self) -> Iterator[tuple[Any, Any]]:
        opened = self._values_of(self._keys_of(self._current()))  # one file, whatever is reloaded meanwhile
        return zip(_keys_in(opened), _values_in(opened), strict=True)

    @classmethod
    def _class_for(cls, file: File) -> Any:
        return ExactStore if cls is Store and _is_mapping(file) else cls


class ExactStore(Store, Mapping[Any, Any]):
    """A store of keys and values whose look-ups are never wrong, for its keys are stored (`keys="exact"`): a `Mapping`.

    It goes through its keys in the order of their indices, which the hash gives and the same records, options and
    `seed=` give again. Keys come back as `str` if all were given as `str`, else as bytes, or as integers. It equals any
    other mapping with equal items."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        if len(self) != len(other):
            return False
        for key, value in self.items():
            its = other.get(key, _MISSING)
            if its is _MISSING or not (its is value or its == value):
                return False
        return True

    __hash__ = None  # type: ignore[assignment]

    def __reversed__(self) -> NoReturn:
        raise TypeError("a store has no reverse order")

    def _opening(self, source: Source, file: File) -> Opened:
        if file.header.kind is Kind.STORE and not _is_mapping(file):
            raise FormatError("expected a store of keys and values, which keys='exact' makes: mphfstore.open opens any")
        return super()._opening(source, file)


def _is_mapping(file: File) -> bool:
    return file.schema.get("keys") == "exact" and file.schema.get("values") is not None


def _keys_in(opened: Opened) -> Iterator[Any]:
    """The keys in the order of their indices, some at a time."""
    file = opened.file
    return _views.stretches(file.header.keys, len(file.sections[Section.KEYS]), opened.key_list)


def _values_in(opened: Opened) -> Iterator[Any]:
    """The values in the order of their indices, some at a time."""
    file = opened.file
    return _views.stretches(file.header.keys, len(file.data), partial(_values_between, opened))


def _values_between(opened: Opened, begin: int, end: int) -> Any:
    if opened.values is not None:
        return opened.values[begin:end]
    return opened.value_list_at(np.arange(begin, end), None)
