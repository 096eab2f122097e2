"""Keys: what counts as one, and batches of them as flat memory without an object per key."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._encoded import decode_text
from ._lookup import join
from ._native import ffi, lib


@dataclass(frozen=True)
class KeyBatch:
    """`count` byte-string keys: key i is `data[offsets[i]:offsets[i + 1]]`; without offsets the i-th stretch of
    `width` bytes,
    less its trailing NULs if `strip` (numpy's rule for arrays of dtype `S`)."""

    data: NDArray[np.uint8]
    count: int
    offsets: NDArray[np.uint64] | None = None
    width: int = 0
    strip: bool = False

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> bytes:
        if self.offsets is not None:
            return self.data[int(self.offsets[i]) : int(self.offsets[i + 1])].tobytes()
        key = self.data[i * self.width : (i + 1) * self.width].tobytes()
        return key.rstrip(b"\0") if self.strip else key

    def take(self, records: NDArray[np.uint64]) -> KeyBatch:
        """The keys of some records, in that order."""
        if self.offsets is None:
            rows = self.data.reshape(self.count, self.width)[records]
            return KeyBatch(np.ascontiguousarray(rows).reshape(-1), len(records), width=self.width, strip=self.strip)
        lengths = np.diff(self.offsets)[records]
        offsets = offsets_of(lengths)
        return KeyBatch(gather(self.data, records, int(offsets[-1]), offsets=self.offsets), len(records), offsets)

    @staticmethod
    def concatenate(batches: list[KeyBatch]) -> KeyBatch:
        """One batch of all keys."""
        if len(batches) == 1:
            return batches[0]
        if batches and all(batch.offsets is None and batch.width == batches[0].width for batch in batches):
            data, strip = np.concatenate([batch.data for batch in batches]), any(batch.strip for batch in batches)
            return KeyBatch(data, sum(map(len, batches)), width=batches[0].width, strip=strip)
        parts = [batch.spelled_out() for batch in batches]
        lengths = np.concatenate([np.empty(0, np.uint64), *(lengths for _, lengths in parts)])
        return KeyBatch(
            np.concatenate([np.empty(0, np.uint8), *(data for data, _ in parts)]), len(lengths), offsets_of(lengths)
        )

    def spelled_out(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """The keys behind one another, and their lengths."""
        if self.offsets is not None:
            return self.data, np.diff(self.offsets)
        if not self.strip:
            return self.data, np.full(self.count, self.width, np.uint64)
        rows = self.data.reshape(self.count, self.width)
        lengths = np.char.str_len(self.data.view(f"S{self.width}")).astype(np.uint64)
        return rows[np.arange(self.width) < lengths[:, None]], lengths

    def native(self) -> Any:
        """A `key_batch` for C; valid while it and this batch live."""
        batch = ffi.new("key_batch *")
        batch.data = ffi.from_buffer("uint8_t[]", self.data)
        batch.offsets = ffi.NULL if self.offsets is None else ffi.from_buffer("uint64_t[]", self.offsets)
        batch.width, batch.count, batch.strip = self.width, self.count, self.strip
        return batch


def offsets_of(lengths: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """0, and the running sum of the lengths."""
    offsets = np.zeros(len(lengths) + 1, np.uint64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def gather(
    rows: NDArray[np.uint8],
    ids: NDArray[np.uint64],
    size: int,
    *,
    width: int = 0,
    offsets: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint8]:
    """Rows of `width` bytes, or from offsets[id] to offsets[id + 1], closed up to `size` bytes in the order of
    `ids`."""
    out = np.empty(size, np.uint8)
    lib.mphf_gather(
        ffi.from_buffer("uint8_t[]", rows),
        ffi.NULL if offsets is None else ffi.from_buffer("uint64_t[]", offsets),
        width,
        ffi.from_buffer("uint64_t[]", ids),
        len(ids),
        ffi.from_buffer("uint8_t[]", out),
    )
    return out


def flat(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of an array; a copy where it is not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class BytesKeys:
    """Keys that are bytes-like objects or `str`; a `str` is the same key as its UTF-8 encoding."""

    name = "bytes"
    size, signed, text = 0, False, True

    def one(self, key: object) -> bytes:
        """Raises TypeError for anything else, UnicodeEncodeError for a lone surrogate."""
        if type(key) is bytes:
            return key
        # What others contain, whatever a subclass says of it.
        if isinstance(key, str):
            return str.encode(key)
        if isinstance(key, bytes):
            return bytes.__getitem__(key, slice(None))
        if isinstance(key, bytearray | memoryview):
            return memoryview(key).tobytes()
        raise TypeError(f"a key of this store is bytes or str, not {type(key).__name__}")

    def decode(self, raw: bytes) -> Any:
        """The key that `one` made these bytes of, as bytes."""
        return raw

    def batch(self, keys: Iterable[Any]) -> KeyBatch:
        """From a one-dimensional numpy array of dtype `S` or `U`, or any iterable of bytes-like objects and `str`."""
        if isinstance(keys, np.ndarray):
            if keys.ndim != 1:
                raise ValueError(f"a batch of keys has one dimension, not {keys.ndim}")
            if keys.dtype.kind == "U":
                keys = np.char.encode(keys, "utf-8")
            if keys.dtype.kind == "S":
                return KeyBatch(flat(keys), len(keys), width=keys.dtype.itemsize, strip=True)
            if keys.dtype.kind != "O":
                raise TypeError(f"a key of this store is bytes or str, not an array of {keys.dtype}")
        _refuse_single(keys)
        keys = keys if isinstance(keys, list) else list(keys)
        data, offsets = join(keys, self)
        return KeyBatch(np.frombuffer(data, np.uint8), len(keys), np.frombuffer(offsets, np.uint64))


class TextKeys(BytesKeys):
    """The same keys, all of them given as `str`: that is what they come back as."""

    name = "str"

    def decode(self, raw: bytes) -> Any:
        """FormatError for what is not UTF-8."""
        return decode_text(raw)


class IntegerKeys:
    """Keys that are integers of one numpy dtype; as bytes, little-endian in the dtype's width."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        if self.dtype.kind not in "iu":
            raise TypeError(f"integer keys have an integer dtype, not {self.dtype}")
        self.name = self.dtype.str
        self.size, self.signed, self.text = self.dtype.itemsize, self.dtype.kind == "i", False

    def one(self, key: object) -> bytes:
        """Raises TypeError for what is no integer, OverflowError for one outside the dtype."""
        try:
            value = operator.index(key)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"a key of this store is an integer ({self.dtype}), not {type(key).__name__}") from None
        return value.to_bytes(self.size, "little", signed=self.signed)

    def decode(self, raw: bytes) -> int:
        """The key that `one` made these bytes of."""
        return int.from_bytes(raw, "little", signed=self.signed)

    def batch(self, keys: Iterable[Any]) -> KeyBatch:
        """From a one-dimensional integer array or any iterable of integers. OverflowError if one does not fit the
        dtype."""
        _refuse_single(keys)
        if not isinstance(keys, np.ndarray) or keys.dtype.kind == "O":
            data, _ = join(keys if isinstance(keys, list) else list(keys), self)
            return KeyBatch(np.frombuffer(data, np.uint8), len(data) // self.size, width=self.size)
        if keys.ndim != 1:
            raise ValueError(f"a batch of keys has one dimension, not {keys.ndim}")
        if keys.dtype.kind not in "iu" and len(keys):
            raise TypeError(f"a key of this store is an integer ({self.dtype}), not an array of {keys.dtype}")
        if keys.dtype != self.dtype and len(keys):
            bounds = np.iinfo(self.dtype)
            if int(keys.min()) < bounds.min or int(keys.max()) > bounds.max:
                raise OverflowError(f"an integer key is outside {self.dtype}")
        return KeyBatch(flat(keys.astype(self.dtype, copy=False)), len(keys), width=self.size)


def listed(keys: Any) -> Any:
    """A batch of keys as an array or list. Raises TypeError for a single key."""
    _refuse_single(keys)
    return keys if isinstance(keys, np.ndarray) else list(keys)


def _refuse_single(keys: object) -> None:
    if isinstance(keys, str | bytes | bytearray | memoryview):
        raise TypeError("a batch is an iterable of keys, not a single key")


KeyType = BytesKeys | IntegerKeys


def key_type(name: str) -> KeyType:
    """From its name in a file's schema."""
    return BytesKeys() if name == "bytes" else TextKeys() if name == "str" else IntegerKeys(name)


def infer_key_type(keys: object, key_dtype: Any = None) -> KeyType:
    """The declared integer dtype, else that of an integer array, else bytes."""
    if key_dtype is not None:
        return IntegerKeys(key_dtype)
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
        return IntegerKeys(keys.dtype)
    return BytesKeys()
