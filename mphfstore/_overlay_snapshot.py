"""Look-ups in what an overlay shows at one moment; and that moment kept."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Any, NoReturn

from ._environment import Environment
from ._layering import Layered
from ._overlay_view import ABSENT, View


class _Items(ItemsView[Any, Any]):
    _mapping: Viewing

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._mapping._iterate(items=True)


class Viewing(Layered, Mapping[Any, Any]):
    """Look-ups in a view."""

    _view: View | None = None

    def _current(self) -> View:
        if self._view is None:
            raise ValueError(f"this {type(self).__name__.lower()} is closed")
        return self._view

    def _show(self, view: View | None) -> None:
        if view is None:
            self._attach(None, None, 0, False)
        else:
            kind = view.schema.keys
            self._attach(view.base.store, view.keys, kind.size, kind.text)
        self._view = view

    def _value(self, key: Any) -> Any:
        now = self._current()
        try:
            raw = now.schema.keys.one(key)
        except OverflowError:  # no integer of the dtype: absent
            return ABSENT
        return now.value(key, raw)

    def _item(self, key: Any) -> Any:
        value = self._value(key)
        if value is ABSENT:
            raise KeyError(key)
        return value

    def _get(self, key: Any, default: Any) -> Any:
        value = self._value(key)
        return default if value is ABSENT else value

    def _has(self, key: object) -> bool:
        now = self._current()
        try:
            raw = now.schema.keys.one(key)
        except OverflowError:
            return False
        return now.has(key, raw)

    def _iterate(self, items: bool = False) -> Iterator[Any]:
        now = self._current()
        return now.items() if items else iter(now)

    def __iter__(self) -> Iterator[Any]:
        return self._iterate()

    def __len__(self) -> int:
        return len(self._current())

    def items(self) -> ItemsView[Any, Any]:
        """A view of the pairs; iterating over it shows the state of the moment it begins."""
        return _Items(self)

    def close(self) -> None:
        """Lets go of the transaction and the base. Look-ups afterwards raise ValueError."""
        self._show(None)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Snapshot(Viewing):
    """An immutable mapping: what an overlay showed at one moment, whatever is written, compacted or published later.

    While it is open LMDB reuses no page that it can see, so the environment grows with what others write; close it,
    or use it in a `with` block. It cannot be pickled, and after a fork the child has to take another one
    (RuntimeError)."""

    def __init__(self, env: Environment, view: View) -> None:
        self._env = env
        self._show(view)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a snapshot cannot be pickled: pickle the overlay and take another one")
