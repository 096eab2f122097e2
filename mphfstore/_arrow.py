"""Arrays of other libraries – pyarrow, polars, nanoarrow, pandas … – as flat memory, read through the Arrow C data
interface (its structures are a stable ABI: https://arrow.apache.org/docs/format/CDataInterface.html), without any of
them installed.

    array or stream  →  capsules  →  structures that are ours to release  →  Column per chunk, on the producer's memory

Buffers are not copied, but for what this package's keys are not: 32-bit offsets are widened, views joined, bits
unpacked."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._native import ffi, lib


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_RELEASE = {kind: ctypes.CFUNCTYPE(None, ctypes.POINTER(kind)) for kind in (_Schema, _Array, _Stream)}
_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _RELEASE[_Schema]),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _RELEASE[_Array]),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", _RELEASE[_Stream]),
    ("private_data", ctypes.c_void_p),
]


class _Owned:
    """A structure of the interface that is ours to release: when the last array on its memory is gone."""

    def __init__(self, structure: Any, capsule: Any = None, name: bytes = b"") -> None:
        """Empty, to be filled by a call; or moved out of a capsule, which owns nothing any more then."""
        self.it = structure()
        if capsule is not None:
            source = structure.from_address(_pointer(capsule, name))
            ctypes.pointer(self.it)[0] = source
            source.release = type(source.release)()

    def __del__(self) -> None:
        if self.it.release:
            self.it.release(ctypes.byref(self.it))


def _pointer(capsule: object, name: bytes) -> int:
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    address: int = get(capsule, name)
    return address


class _Buffer:
    """`count` elements at an address, for numpy, which keeps this object and so the owner of the memory."""

    def __init__(self, owner: object, address: int | None, dtype: str, count: int) -> None:
        self._owner = owner
        self.__array_interface__ = {"version": 3, "data": (address, True), "typestr": dtype, "shape": (count,)}


def _memory(owner: object, address: int | None, dtype: str, count: int) -> NDArray[Any]:
    if not count or address is None:
        return np.zeros(count, dtype)
    return np.asarray(_Buffer(owner, address, dtype, count))


_UNITS = ("s", "ms", "us", "ns")
_NAMES = {"bytes": "binary", "text": "string", "nothing": "null"}
_NUMBERS = {
    "b": "?",
    "tdD": "<M8[D]",
    "tdm": "<M8[ms]",
    **dict(
        zip("cCsSiIlLefg", ("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"), strict=True)
    ),
    **{f"ts{unit[0]}": f"<M8[{unit}]" for unit in _UNITS},
    **{f"tD{unit[0]}": f"<m8[{unit}]" for unit in _UNITS},
}
_STRINGS = {"z": "bytes", "Z": "bytes", "vz": "bytes", "u": "text", "U": "text", "vu": "text"}


@dataclass(frozen=True)
class Column:
    """The elements of one chunk, `valid` where they are not null (None: everywhere).

    kind: "bytes" or "text", of which element i is data[offsets[i]:offsets[i + 1]], offsets beginning with 0, or
    without offsets the i-th stretch of `width` bytes; "numbers": elements of `data`; "nothing": empty strings that
    are null. With a `dictionary`, `data` are places in that."""

    kind: str
    count: int
    data: NDArray[Any]
    offsets: NDArray[np.uint64] | None = None
    width: int = 0
    valid: NDArray[np.bool_] | None = None
    dictionary: Column | None = None

    def element(self, i: int) -> object:
        """One element as a Python object; None if it is null."""
        if self.valid is not None and not self.valid[i]:
            return None
        if self.dictionary is not None:
            return self.dictionary.element(int(self.data[i]))
        if self.kind == "numbers":
            return self.data[i].item()
        begin, end = i * self.width, (i + 1) * self.width
        if self.offsets is not None:
            begin, end = int(self.offsets[i]), int(self.offsets[i + 1])
        raw = self.data[begin:end].tobytes()
        return raw.decode(errors="replace") if self.kind == "text" else raw


@dataclass(frozen=True)
class Columns:
    """The chunks of an array. dtype: of numbers, else None. `of`: the type, for messages."""

    kind: str
    dtype: np.dtype[Any] | None
    of: str
    chunks: tuple[Column, ...]

    def __len__(self) -> int:
        return sum(chunk.count for chunk in self.chunks)

    def nulls(self) -> NDArray[np.bool_] | None:
        """Which elements are null; None: none is."""
        if all(chunk.valid is None or chunk.valid.all() for chunk in self.chunks):
            return None
        return np.concatenate(
            [np.zeros(chunk.count, bool) if chunk.valid is None else ~chunk.valid for chunk in self.chunks]
        )

    def numbers(self) -> NDArray[Any]:
        """All elements, those that are null as whatever lies there."""
        assert self.dtype is not None
        parts = [chunk.data if chunk.dictionary is None else chunk.dictionary.data[chunk.data] for chunk in self.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, self.dtype), *parts])

    def element(self, i: int) -> object:
        """One element as a Python object; None if it is null."""
        for chunk in self.chunks:
            if i < chunk.count:
                return chunk.element(i)
            i -= chunk.count
        raise IndexError


def columns(source: object) -> Columns | None:
    """The array if this is one of the Arrow C data interface; None if it is not.

    Raises TypeError for a table, or for elements that are neither strings, numbers nor times; OSError if a stream
    fails."""
    if isinstance(source, Columns):
        return source
    if isinstance(source, np.ndarray | list):
        return None
    if not is_arrow(source):
        return None
    try:
        schema, arrays = _exported(source)
    except ImportError:  # pandas without pyarrow: as good as any iterable
        return None
    values = schema.it.dictionary.contents if schema.it.dictionary else schema.it
    kind, dtype = _kind(values.format.decode())
    chunks = tuple(_column(schema.it, array.it, array) for array in arrays)
    return Columns(kind, dtype, str(dtype or _NAMES[kind]), chunks)


def is_arrow(source: object) -> bool:
    """Whether it says that it is an array of the interface."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def _exported(source: Any) -> tuple[_Owned, list[_Owned]]:
    """Schema and chunks."""
    if hasattr(source, "__arrow_c_stream__"):
        stream = _Owned(_Stream, source.__arrow_c_stream__(), b"arrow_array_stream")
        schema = _Owned(_Schema)
        _check(stream, stream.it.get_schema(stream.it, schema.it))
        return schema, list(_arrays(stream))
    schema_capsule, array_capsule = source.__arrow_c_array__()
    return _Owned(_Schema, schema_capsule, b"arrow_schema"), [_Owned(_Array, array_capsule, b"arrow_array")]


def _arrays(stream: _Owned) -> Iterator[_Owned]:
    while True:
        array = _Owned(_Array)
        _check(stream, stream.it.get_next(stream.it, array.it))
        if not array.it.release:
            return
        yield array


def _check(stream: _Owned, code: int) -> None:
    if code:
        message = stream.it.get_last_error(stream.it)
        raise OSError(code, (message or b"").decode(errors="replace") or os.strerror(code))


def _kind(form: str) -> tuple[str, np.dtype[Any] | None]:
    """Of a format, as Columns has them."""
    if form == "n":
        return "nothing", None
    if form in _STRINGS or form.startswith("w:"):
        return _STRINGS.get(form, "bytes"), None
    number = _NUMBERS.get(form.partition(":")[0])
    if number is None:
        what = "a table" if form == "+s" else f"an Arrow array of format {form!r}"
        raise TypeError(f"one column of strings, numbers or times is expected, not {what}")
    return "numbers", np.dtype(number)


def _column(schema: Any, array: Any, owner: object) -> Column:
    """A chunk; `owner` keeps its memory."""
    form: str = schema.format.decode()
    kind, dtype = _kind(form)
    count, offset, buffers = array.length, array.offset, array.buffers
    if schema.dictionary:
        values = _column(schema.dictionary.contents, array.dictionary.contents, owner)
        if not count or not values.count:
            return _nulls(values.kind, values.data.dtype, count)
    elif kind == "nothing" or not count:
        return _nulls(kind, dtype, count)
    valid = _bits(owner, buffers[0], offset, count) if buffers[0] and array.null_count else None
    if dtype is not None:
        numbers = _numbers(owner, buffers[1], form, dtype, offset, count)
        return _encoded(numbers, valid, values) if schema.dictionary else Column(kind, count, numbers, valid=valid)
    if form.startswith("w:"):
        width = int(form[2:])
        data = _memory(owner, buffers[1], "|u1", (offset + count) * width)[offset * width :]
        return Column(kind, count, data, width=width, valid=valid)
    if form.startswith("v"):
        return Column(kind, count, *_joined_views(owner, array, valid), valid=valid)
    offsets = _memory(owner, buffers[1], "<i4" if form in "zu" else "<i8", offset + count + 1)[offset:]
    begin, end = int(offsets[0]), int(offsets[-1])
    data = _memory(owner, buffers[2], "|u1", end)[begin:]
    if begin:
        offsets = offsets - offsets[0]
    return Column(
        kind, count, data, offsets.view(np.uint64) if form in "ZU" else offsets.astype(np.uint64), valid=valid
    )


def _nulls(kind: str, dtype: np.dtype[Any] | None, count: int) -> Column:
    nothing = np.zeros(count, bool)
    if kind == "numbers":
        return Column(kind, count, np.zeros(count, dtype), valid=nothing)
    return Column(kind, count, np.empty(0, np.uint8), np.zeros(count + 1, np.uint64), valid=nothing)


def _encoded(places: NDArray[Any], valid: NDArray[np.bool_] | None, values: Column) -> Column:
    """Elements that are places in a dictionary of at least one value; what is null has place 0."""
    if valid is not None:
        places = np.where(valid, places, 0)
    if values.valid is not None:
        valid = values.valid[places] if valid is None else valid & values.valid[places]
    return Column(values.kind, len(places), places.astype(np.uint64), valid=valid, dictionary=values)


def _numbers(
    owner: object, address: int | None, form: str, dtype: np.dtype[Any], offset: int, count: int
) -> NDArray[Any]:
    if form == "b":
        return _bits(owner, address, offset, count)
    stored = "<i4" if form == "tdD" else dtype.str
    return _memory(owner, address, stored, offset + count)[offset:].astype(dtype, copy=False)


def _bits(owner: object, address: int | None, offset: int, count: int) -> NDArray[np.bool_]:
    first, skipped = divmod(offset, 8)
    packed = _memory(owner, address, "|u1", (offset + count + 7) // 8)[first:]
    return np.unpackbits(packed, count=skipped + count, bitorder="little")[skipped:].view(bool)


def _joined_views(
    owner: object, array: Any, valid: NDArray[np.bool_] | None
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Strings of an array of views behind one another, and their offsets."""
    offset, count = array.offset, array.length
    views = _memory(owner, array.buffers[1], "|V16", offset + count)[offset:]
    lengths = views.view("<i4").reshape(count, 4)[:, 0]
    offsets = np.zeros(count + 1, np.uint64)
    np.cumsum(lengths if valid is None else np.where(valid, lengths, 0), out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    lib.mphf_join_views(
        ffi.from_buffer("arrow_view[]", views),
        ffi.cast("uint8_t **", ctypes.addressof(array.buffers.contents) + 2 * ctypes.sizeof(ctypes.c_void_p)),
        ffi.from_buffer("uint64_t[]", offsets),
        count,
        ffi.from_buffer("uint8_t[]", data),
    )
    return data, offsets
