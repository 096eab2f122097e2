"""What `keys()`, `values()` and `items()` of a store give: views that go through the file in the order of its indices,
one object at a time."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Sized, ValuesView
from typing import Any, Protocol


class Source(Sized, Protocol):
    """A store that a view is of."""

    def _each_key(self) -> Iterator[Any]: ...
    def _each_value(self) -> Iterator[Any]: ...


class Keys(KeysView[Any]):
    """A set-like view of the keys."""

    _mapping: Any

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mapping._each_key())


class Values(ValuesView[Any]):
    """A view of the values; `in` looks through all of them."""

    _mapping: Any

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mapping._each_value())

    def __contains__(self, value: object) -> bool:
        return any(own is value or own == value for own in self)


class Items(ItemsView[Any, Any]):
    """A set-like view of (key, value) pairs; no key is looked up on the way."""

    _mapping: Any

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self._mapping._each_key(), self._mapping._each_value(), strict=True)
