"""Keys: what counts as one, and batches of them as flat memory without an object per key."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrow import Column, Columns, columns
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

    def slice(self, begin: int, end: int) -> KeyBatch:
        """Keys `begin` to `end`, without a copy: their offsets go on from where they lie."""
        if self.offsets is not None:
            return replace(self, count=end - begin, offsets=self.offsets[begin : end + 1])
        return replace(self, count=end - begin, data=self.data[begin * self.width : end * self.width])

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


@dataclass
class Parts:
    """The keys of a batch that is looked up, in batches behind one another. missing: which of them are none, but
    only hold a place: nulls, and integers that the dtype does not have. None: all are keys."""

    batches: list[KeyBatch]
    missing: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        self.count = sum([batch.count for batch in self.batches])


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
    arrow_kinds: tuple[str, ...] = ("bytes", "text", "nothing")
    _expected = "a key of this store is bytes or str"

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
        hint = "; integers are keys of stores that are built with key_dtype" if isinstance(key, int) else ""
        raise TypeError(f"{self._expected}, not {type(key).__name__}{hint}")

    def decode(self, raw: bytes) -> Any:
        """The key that `one` made these bytes of, as bytes."""
        return raw

    def batch(self, keys: Iterable[Any]) -> KeyBatch:
        """From a one-dimensional numpy array of dtype `S`, `U` or `StringDType`, an Arrow array of strings, or any
        iterable of bytes-like objects and `str`. ValueError for a null."""
        parts = self.parts(keys)
        refuse_nulls(parts.missing)
        return KeyBatch.concatenate(parts.batches)

    def parts(self, keys: Iterable[Any]) -> Parts:
        """The same for a look-up, in which a null is absent."""
        given: Any = listed(keys)
        if isinstance(given, Columns):
            if given.kind not in self.arrow_kinds:
                raise TypeError(f"{self._expected}, not an Arrow array of {given.of}")
            return Parts([_strings(chunk) for chunk in given.chunks], given.nulls())
        if isinstance(given, np.ndarray):
            if given.ndim != 1:
                raise ValueError(f"a batch of keys has one dimension, not {given.ndim}")
            if given.dtype.kind == "U":
                return Parts([_utf8(given)])
            if given.dtype.kind == "S":
                return Parts([KeyBatch(flat(given), len(given), width=given.dtype.itemsize, strip=True)])
            if given.dtype.kind not in "OT":
                raise TypeError(f"{self._expected}, not an array of {given.dtype}")
            given = given.tolist()
        data, offsets = join(given, self)
        return Parts([KeyBatch(np.frombuffer(data, np.uint8), len(given), np.frombuffer(offsets, np.uint64))])


def _strings(column: Column) -> KeyBatch:
    """Of an Arrow array; what is null is some key."""
    if column.dictionary is not None:
        return _strings(column.dictionary).take(column.data)
    return KeyBatch(column.data, column.count, column.offsets, column.width)


def _utf8(keys: NDArray[np.str_]) -> KeyBatch:
    """Of an array of dtype `U`. UnicodeEncodeError for a lone surrogate."""
    count, width = len(keys), keys.dtype.itemsize // 4
    codes = flat(keys.astype(keys.dtype.newbyteorder("<"), copy=False))
    offsets, data = np.empty(count + 1, np.uint64), np.empty(4 * width * count, np.uint8)
    done = lib.mphf_utf8(
        ffi.from_buffer("uint32_t[]", codes), width, count,
        ffi.from_buffer("uint64_t[]", offsets), ffi.from_buffer("uint8_t[]", data),
    )  # fmt: skip
    if done != count:
        raise ValueError(f"key {done} is no text: {keys[done].encode()!r}")
    return KeyBatch(data[: offsets[-1]], count, offsets)


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
        """From a one-dimensional integer array of numpy or Arrow, or any iterable of integers. OverflowError if one
        does not fit the dtype, ValueError for a null."""
        given, nulls = self._given(keys)
        refuse_nulls(nulls)
        if isinstance(given, list):
            return self._joined(given)
        if self._outside(given) is not None:
            raise OverflowError(f"an integer key is outside {self.dtype}")
        return self._flat(given)

    def parts(self, keys: Iterable[Any]) -> Parts:
        """The same for a look-up, in which a null or what does not fit is absent."""
        given, missing = self._given(keys)
        if not isinstance(given, list):
            outside = self._outside(given)
            if outside is not None:
                missing = outside if missing is None else missing | outside
            return Parts([self._flat(given)], missing)
        try:
            return Parts([self._joined(given)])
        except OverflowError:
            pass
        missing, raw = np.zeros(len(given), bool), bytearray()
        for i, key in enumerate(given):
            try:
                raw += self.one(key)
            except OverflowError:
                raw += bytes(self.size)
                missing[i] = True
        return Parts([KeyBatch(np.frombuffer(raw, np.uint8), len(given), width=self.size)], missing)

    def _given(self, keys: Iterable[Any]) -> tuple[list[Any] | NDArray[Any], NDArray[np.bool_] | None]:
        """A list of objects or an array of integers, and which of them are null."""
        given: Any = listed(keys)
        if isinstance(given, Columns):
            if given.kind == "nothing":
                return np.zeros(len(given), self.dtype), given.nulls()
            if given.dtype is None or given.dtype.kind not in "iu":
                raise TypeError(f"a key of this store is an integer ({self.dtype}), not an Arrow array of {given.of}")
            return given.numbers(), given.nulls()
        if isinstance(given, list) or given.dtype.kind == "O":
            return list(given), None
        if given.ndim != 1:
            raise ValueError(f"a batch of keys has one dimension, not {given.ndim}")
        if given.dtype.kind not in "iu" and len(given):
            raise TypeError(f"a key of this store is an integer ({self.dtype}), not an array of {given.dtype}")
        return given, None

    def _joined(self, keys: list[Any]) -> KeyBatch:
        data, _ = join(keys, self)
        return KeyBatch(np.frombuffer(data, np.uint8), len(data) // self.size, width=self.size)

    def _flat(self, keys: NDArray[Any]) -> KeyBatch:
        return KeyBatch(flat(keys.astype(self.dtype, copy=False)), len(keys), width=self.size)

    def _outside(self, keys: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Which integers the dtype does not have; None: it has them all."""
        if not len(keys) or np.can_cast(keys.dtype, self.dtype):
            return None
        have, bounds = np.iinfo(keys.dtype), np.iinfo(self.dtype)
        outside = np.zeros(len(keys), bool)
        if have.min < bounds.min:
            outside |= keys < keys.dtype.type(bounds.min)
        if have.max > bounds.max:
            outside |= keys > keys.dtype.type(bounds.max)
        return outside if outside.any() else None


def listed(keys: Any) -> Any:
    """A batch of keys as a numpy array, the columns of an Arrow array, or a list. Raises TypeError for a single
    key."""
    if isinstance(keys, np.ndarray | Columns):
        return keys
    if isinstance(keys, str | bytes | bytearray | memoryview):
        raise TypeError("a batch is an iterable of keys, not a single key")
    arrow = columns(keys)
    if arrow is not None:
        return arrow
    return keys if isinstance(keys, list) else list(keys)


def refuse_nulls(nulls: NDArray[np.bool_] | None) -> None:
    """Raises ValueError if any record is null."""
    if nulls is not None:
        raise ValueError(f"record {int(np.argmax(nulls))} is null: a store has no place for that")


KeyType = BytesKeys | IntegerKeys


def key_type(name: str) -> KeyType:
    """From its name in a file's schema."""
    return BytesKeys() if name == "bytes" else TextKeys() if name == "str" else IntegerKeys(name)


def infer_key_type(keys: object, key_dtype: Any = None) -> KeyType:
    """The declared integer dtype, else that of an integer array, else bytes. `keys`: as `listed` makes them."""
    if key_dtype is not None:
        return IntegerKeys(key_dtype)
    if isinstance(keys, np.ndarray | Columns) and keys.dtype is not None and keys.dtype.kind in "iu":
        return IntegerKeys(keys.dtype)
    return BytesKeys()
