"""The key-value store: look-ups of values in a mapped file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import FormatError
from ._format import Kind, Section
from ._handle import Membership, Opened, sound
from ._keys import listed
from ._native import ffi, lib
from ._values import dtype_from_schema, flatten_one

_MISSING: Any = object()


class Store(Membership):
    """A static key-value store in one mapped file.

    A key that was stored is always found. A key that was not is taken for a stored one – with that one's value –
    with probability
    2^-fingerprint_bits, for the keys themselves are not kept. Values are `bytes`, or numpy scalars (records) of the
    store's dtype."""

    _kind = Kind.STORE

    def __init__(self, data: memoryview, path: Path | None = None) -> None:
        super().__init__(data, path)
        file = self._current().file
        kind, width = file.schema.get("values"), file.schema.get("value_width")
        self._has_values = kind is not None
        dtype = dtype_from_schema(kind, width)
        self._width: int | None = width
        if width is not None and len(file.sections[Section.VALUES]) != len(self) * width:
            raise FormatError("values are not as many or as wide as the header says")
        if dtype is not None:
            self._current().values = np.frombuffer(file.sections[Section.VALUES], dtype, len(self))

    def __getitem__(self, key: object) -> Any:
        """The key's value. Raises KeyError if it is absent, TypeError if it is no key of this store's kind."""
        opened = self._current()
        index = self._find_or_absent(opened, key)
        if index == lib.ABSENT:
            raise KeyError(key)
        return self._value(opened, index)

    def get(self, key: object, default: Any = None) -> Any:
        """The key's value, or `default` if it is absent."""
        try:
            return self[key]
        except KeyError:
            return default

    def _value(self, opened: Opened, index: int) -> Any:
        if opened.values is not None:
            return opened.values[index]
        sections = opened.file.sections
        if self._width is not None:
            return bytes(sections[Section.VALUES][index * self._width : (index + 1) * self._width])
        if not self._has_values:
            raise TypeError("this store has no values; use `in`")
        span = lib.mphf_span(opened.reader, index)
        if span.begin < 0:
            sound(span.begin)
        return bytes(sections[Section.BLOB][span.begin : span.end])

    def get_many(self, keys: Iterable[Any], default: Any = _MISSING) -> Any:
        """The values of a batch of keys, in its order: an array of the store's dtype, or a list of bytes.

        Absent keys have `default`; without one they raise KeyError, which names the first."""
        opened, batch = self._current(), listed(keys)
        if not self._has_values:
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
        blob = opened.file.sections[Section.BLOB if self._width is None else Section.VALUES]
        if self._width is not None:
            begins, ends = indices * self._width, (indices + 1) * self._width
        else:
            begins, ends = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64)
            pointers = (ffi.from_buffer("int64_t[]", array) for array in (indices, begins, ends))
            sound(lib.mphf_span_batch(opened.reader, len(batch), *pointers))
        spans = zip(indices.tolist(), begins.tolist(), ends.tolist(), strict=True)
        return [default if index < 0 else bytes(blob[begin:end]) for index, begin, end in spans]

    def values_array(self) -> NDArray[Any]:
        """All values in index order, without a copy: a read-only array on the mapping, which it keeps. TypeError
        unless the store's values have a numpy dtype."""
        values = self._current().values
        if values is None:
            raise TypeError("values of this store are bytes, not of a numpy dtype")
        return values
