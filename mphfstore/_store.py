"""The key-value store: look-ups of values in a mapped file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import FormatError
from ._format import Kind, Section
from ._handle import Membership, sound
from ._native import ffi, lib
from ._values import dtype_from_schema

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
        schema, sections = self._file.schema, self._file.sections
        self._dtype = dtype_from_schema(schema.get("values"), schema.get("value_width"))
        self._width: int | None = schema.get("value_width")
        self._values: NDArray[Any] | None = None
        self._blob: memoryview = sections.get(Section.BLOB, memoryview(b""))
        self._has_values = schema.get("values") is not None
        variable = self._has_values and self._width is None
        if {Section.OFFSETS, Section.BLOB, Section.VALUES} & set(sections) != (
            {Section.OFFSETS, Section.BLOB} if variable else {Section.VALUES} if self._has_values else set()
        ):
            raise FormatError("schema and sections do not match")
        if self._width is not None:
            raw = sections[Section.VALUES]
            if len(raw) != len(self) * self._width:
                raise FormatError("schema and sections do not match")
            if self._dtype is not None:
                self._values = np.frombuffer(raw, self._dtype, len(self))
            self._blob = raw

    def close(self) -> None:
        super().close()
        self._values, self._blob = None, memoryview(b"")

    def __getitem__(self, key: object) -> Any:
        """The key's value. Raises KeyError if it is absent, TypeError if it is no key of this store's kind."""
        try:
            index = self._find(key)
        except OverflowError:
            index = lib.ABSENT
        if index == lib.ABSENT:
            raise KeyError(key)
        return self._value(index)

    def get(self, key: object, default: Any = None) -> Any:
        """The key's value, or `default` if it is absent."""
        try:
            return self[key]
        except KeyError:
            return default

    def _value(self, index: int) -> Any:
        native, values, blob = self._native, self._values, self._blob
        if values is not None:
            return values[index]
        if self._width is not None:
            return bytes(blob[index * self._width : (index + 1) * self._width])
        if not self._has_values:
            raise TypeError("this store has no values; use `in`")
        span = lib.mphf_span(native.reader, index)
        if span.begin < 0:
            sound(span.begin)
        return bytes(blob[span.begin : span.end])

    def get_many(self, keys: Iterable[Any], default: Any = _MISSING) -> Any:
        """The values of a batch of keys, in its order: an array of the store's dtype, or a list of bytes.

        Absent keys have `default`; without one they raise KeyError, which names the first."""
        batch = self._keys.batch(keys)
        indices = self._batch(batch, lib.mphf_find_batch)
        absent = indices < 0
        if default is _MISSING and absent.any():
            raise KeyError(self._keys.decode(batch[int(np.argmax(absent))]))
        native, values, blob = self._native, self._values, self._blob
        if values is not None:
            if not absent.any():
                return values[indices]
            out = np.empty(len(batch), values.dtype)
            out[~absent] = values[indices[~absent]]
            out[absent] = default
            return out
        if not self._has_values:
            raise TypeError("this store has no values; use contains_many")
        if self._width is not None:
            begins, ends = indices * self._width, (indices + 1) * self._width
        else:
            begins, ends = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64)
            pointers = (ffi.from_buffer("int64_t[]", array) for array in (indices, begins, ends))
            sound(lib.mphf_span_batch(native.reader, len(batch), *pointers))
        return [
            default if i < 0 else bytes(blob[b:e])
            for i, b, e in zip(indices.tolist(), begins.tolist(), ends.tolist(), strict=True)
        ]

    def values_array(self) -> NDArray[Any]:
        """All values in index order, without a copy: a read-only array on the mapping. TypeError unless they have a
        numpy dtype."""
        self._native  # noqa: B018 - raises if closed
        if self._values is None:
            raise TypeError("values of this store are bytes, not of a numpy dtype")
        return self._values
