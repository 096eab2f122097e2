"""Look-ups of one key, and lists of keys as flat memory: in Python over cffi, where native/fastpath.c is not built.

That module has the same names, and every answer and exception is the same; `_lookup` chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import numpy as np

from ._native import ffi, lib


class Kind(Protocol):
    """What keys are."""

    @property
    def size(self) -> int:
        """Bytes of an integer; 0: keys are byte strings."""

    @property
    def signed(self) -> bool: ...

    @property
    def text(self) -> bool:
        """Whether `str` is a key where bytes are."""

    def one(self, key: object) -> bytes:
        """The bytes of a key. TypeError or UnicodeEncodeError for what is none, OverflowError for an integer that
        is too large."""


class Reader:
    """What a look-up works with. Never changes; keeps the memory that it reads.

    reader, values: addresses of the native reader and of the values – 0 if there are none –, which `owner` keeps.
    width: of a value; negative if they vary in it. array: the values as one, if they have a numpy dtype. unpack: makes
    a value of where its bytes begin and end, if they are compressed. decode: makes one of its bytes – `str` of UTF-8 –,
    if they are not the value."""

    def __new__(
        cls, reader: int, owner: object, count: int, kind: Kind, values: int, length: int, width: int, array: Any,
        unpack: Any = None, decode: Any = None,
    ) -> Any:  # fmt: skip
        self = super().__new__(cls)
        self._owner, self._reader = owner, ffi.cast("mphf_reader *", reader)
        self._count, self._one, self._width, self._array = count, kind.one, width, array
        self._unpack, self._decode, self._length = unpack, decode, length
        self._values = ffi.buffer(ffi.cast("uint8_t *", values), 0 if unpack else length) if values else None
        return self

    _owner: object
    _reader: Any
    _values: Any
    _array: Any
    _unpack: Any
    _decode: Any
    _length: int
    _count: int
    _width: int
    _one: Callable[[object], bytes]

    def find(self, key: object) -> int:
        """Index of a key; ABSENT if its fingerprint shows that it is absent, or if the dtype of keys has no such
        integer."""
        try:
            raw = self._one(key)
        except OverflowError:
            return int(lib.ABSENT)
        index: int = lib.mphf_find(self._reader, raw, len(raw))
        if index < lib.ABSENT:
            self._failed(index)
        return index

    def index(self, key: object) -> int:
        """Index of a key of the set; for any other some index below the number of keys, ValueError if that is 0."""
        raw = self._one(key)
        if not self._count:
            raise ValueError("a function of no keys has no index to give")
        index: int = lib.mphf_index(self._reader, raw, len(raw))
        if index < 0:
            self._failed(index)
        return index

    def value(self, index: int) -> Any:
        """The value at an index that was found."""
        if self._array is not None:
            return self._array[index]
        if self._values is None:
            raise TypeError("this store has no values; use `in`")
        if self._width >= 0:
            return self._value_of(self._values[index * self._width : (index + 1) * self._width])
        span = lib.mphf_span(self._reader, index)
        if span.begin < 0 or span.end > self._length:
            self._failed(lib.STATUS_CORRUPT)
        if self._unpack is not None:
            return self._unpack(span.begin, span.end)
        return self._value_of(self._values[span.begin : span.end])

    def _value_of(self, raw: bytes) -> Any:
        if self._decode is not str:
            return raw if self._decode is None else self._decode(raw)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            pass
        self._failed(lib.STATUS_CORRUPT)

    def value_list(self, indices: int, count: int, absent: object) -> list[Any]:
        """The values at `count` indices that lie at an address; `absent` for those below 0."""
        found = ffi.unpack(ffi.cast("int64_t *", indices), count)
        return [absent if index < 0 else self.value(index) for index in found]

    def _failed(self, status: int) -> NoReturn:
        raise NotImplementedError


class Handle:
    """Refers to a Reader until it is closed."""

    _opened: Any = None

    def _attach(self, reader: Reader) -> None:
        self._opened = reader

    def _current(self) -> Any:
        """What a call works with from beginning to end, even if the handle is closed meanwhile."""
        opened = self._opened
        if opened is None:
            raise ValueError("this handle is closed")
        return opened

    def close(self) -> None:
        """Gives the mapping back once no look-up or view uses it any more. Look-ups afterwards raise ValueError."""
        self._opened = None


class Index(Handle):
    def index(self, key: object) -> int:
        """Index of a key of the set; some value below n for any other. Raises ValueError for n = 0, TypeError,
        OverflowError."""
        index: int = self._current().index(key)
        return index


class Contains(Handle):
    def __contains__(self, key: object) -> bool:
        found: bool = self._current().find(key) >= 0
        return found


class Items(Contains):
    def __getitem__(self, key: object) -> Any:
        opened = self._current()
        index = opened.find(key)
        if index == lib.ABSENT:
            raise KeyError(key)
        return opened.value(index)

    def get(self, key: object, default: Any = None) -> Any:
        """The key's value, or `default` if it is absent."""
        opened = self._current()
        index = opened.find(key)
        return default if index == lib.ABSENT else opened.value(index)


def join(keys: list[Any], kind: Kind) -> tuple[Any, Any]:
    """Keys of a list behind one another; and where each begins and the last ends, as bytes of uint64, or None for
    integers. Exceptions as `kind.one` has them."""
    if kind.size:
        return b"".join(map(kind.one, keys)), None
    parts: list[Any] = keys
    types = set(map(type, keys))
    data: str | bytes = ""
    if types == {bytes}:
        data = b"".join(keys)
    elif types == {str} and kind.text:
        data = "".join(keys)
    if isinstance(data, str) and not (data and data.isascii()):  # others have several bytes per character
        parts = list(map(kind.one, keys))
        data = b"".join(parts)
    offsets = np.zeros(len(keys) + 1, np.uint64)
    np.cumsum(np.fromiter(map(len, parts), np.uint64, len(keys)), out=offsets[1:])
    return data.encode() if isinstance(data, str) else data, offsets
