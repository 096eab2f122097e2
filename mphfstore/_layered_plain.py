"""Look-ups in a mapping that lies over another one: in Python, where native/layered.c is not built.

That module has the same names, and every answer and exception is the same; `_layering` chooses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Keyset:
    """Keys that may have changed, as hashes: never wrong about one that was added, and seldom about others."""

    def __init__(self, seed: int) -> None:
        self._hashes: set[int] = set()

    def add(self, key: bytes) -> None:
        self._hashes.add(hash(key))

    def update(self, keys: Iterable[bytes]) -> None:
        self._hashes.update(map(hash, keys))

    def __contains__(self, key: bytes) -> bool:
        return hash(key) in self._hashes

    def __len__(self) -> int:
        return len(self._hashes)


class Layered:
    """`[]`, `get` and `in` that ask the base for the keys that a Keyset does not have; for all others `_item`, `_get`
    and `_has`, which a subclass defines."""

    _base: Any = None
    _keyset: Keyset | None = None
    _size = 0
    _text = False

    def _attach(self, base: Any, keys: Keyset | None, size: int, text: bool, /) -> None:
        """What lies below, if anything; the keys that may have changed, None once it is closed; bytes of an integer
        key, 0 if keys are byte strings; whether `str` is a key, too."""
        self._base, self._keyset, self._size, self._text = base, keys, size, text

    def _unchanged(self, key: Any) -> bool:
        if self._base is None or self._keyset is None:
            return False
        if self._size and type(key) is int:
            raw = (key % (1 << 8 * self._size)).to_bytes(self._size, "little")
        elif type(key) is bytes and not self._size:
            raw = key
        elif type(key) is str and self._text:
            try:
                raw = key.encode()
            except UnicodeEncodeError:
                return False
        else:
            return False
        return raw not in self._keyset

    def __getitem__(self, key: Any) -> Any:
        return self._base[key] if self._unchanged(key) else self._item(key)

    def __contains__(self, key: object) -> bool:
        return key in self._base if self._unchanged(key) else self._has(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """The key's value, or `default` if it is absent."""
        return self._base.get(key, default) if self._unchanged(key) else self._get(key, default)

    def _item(self, key: Any) -> Any:
        raise NotImplementedError

    def _get(self, key: Any, default: Any) -> Any:
        raise NotImplementedError

    def _has(self, key: object) -> bool:
        raise NotImplementedError
