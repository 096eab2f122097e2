"""Values as arrays of pyarrow, without an object per value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import UnavailableError
from ._format import Section
from ._keys import BytesKeys, KeyBatch, flat, gather, offsets_of
from ._native import ffi, lib


def arrow_values(opened: Any, indices: NDArray[np.int64]) -> Any:
    """The values at indices, null where that is negative, as a pyarrow array."""
    try:
        import pyarrow
    except ImportError:
        raise UnavailableError("get_arrow needs pyarrow: pip install 'mphfstore[arrow]'") from None
    present = indices >= 0
    absent = None if present.all() else ~present
    if opened.file.schema.get("values") is None:
        raise TypeError("this store has no values; use contains_many")
    if opened.values is None:
        data, sizes = _bytes_at(opened, indices[present])
        lengths = np.zeros(len(indices), np.uint64)
        lengths[present] = sizes
        return _strings(pyarrow, pyarrow.large_binary(), data, lengths, absent)
    values = np.zeros(len(indices), opened.values.dtype)
    values[present] = opened.values[indices[present]]
    return _array(pyarrow, values, absent)


def _bytes_at(opened: Any, indices: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Values that are bytes behind one another, and their lengths."""
    sections, width = opened.file.sections, opened.file.schema["value_width"]
    if width is not None:
        rows = np.frombuffer(sections[Section.VALUES], np.uint8)
        data = gather(rows, indices.view(np.uint64), len(indices) * width, width=width)
        return data, np.full(len(indices), width, np.uint64)
    begin, end = np.empty_like(indices), np.empty_like(indices)
    status = lib.mphf_span_batch(
        opened.reader, len(indices), *(ffi.from_buffer("int64_t[]", array) for array in (indices, begin, end))
    )
    if status != lib.STATUS_OK:
        opened._failed(status)
    bounds = np.stack((begin, end), axis=1).reshape(-1).view(np.uint64)
    blob, size = np.frombuffer(sections[Section.BLOB], np.uint8), int((end - begin).sum())
    pairs = np.arange(0, len(bounds), 2, dtype=np.uint64)
    return gather(blob, pairs, size, offsets=bounds), (end - begin).view(np.uint64)


def _array(pyarrow: Any, values: NDArray[Any], absent: NDArray[np.bool_] | None) -> Any:
    """A numpy array, and which of its elements are null."""
    dtype = values.dtype
    if values.ndim > 1:
        inner = _array(pyarrow, values.reshape(-1, *values.shape[2:]), None)
        return pyarrow.FixedSizeListArray.from_arrays(inner, values.shape[1])
    if dtype.names is not None:
        fields = [_array(pyarrow, values[name], None) for name in dtype.names]
        mask = None if absent is None else pyarrow.array(absent)
        return pyarrow.StructArray.from_arrays(fields, names=dtype.names, mask=mask)
    if dtype.kind in "SUV":
        keys = KeyBatch(flat(values), len(values), width=dtype.itemsize)
        if dtype.kind != "V":
            keys = BytesKeys().batch(values)
        strings = pyarrow.large_string() if dtype.kind == "U" else pyarrow.large_binary()
        return _strings(pyarrow, strings, *keys.spelled_out(), absent)
    try:
        return pyarrow.array(np.ascontiguousarray(values), mask=absent, from_pandas=False)
    except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
        raise TypeError(f"Arrow has no type that is {dtype}") from None


def _strings(
    pyarrow: Any, kind: Any, data: NDArray[np.uint8], lengths: NDArray[np.uint64], absent: NDArray[np.bool_] | None
) -> Any:
    """Strings behind one another; also null ones have a length."""
    valid = None if absent is None else pyarrow.py_buffer(np.packbits(~absent, bitorder="little"))
    buffers = [valid, pyarrow.py_buffer(offsets_of(lengths)), pyarrow.py_buffer(data)]
    return pyarrow.Array.from_buffers(kind, len(lengths), buffers)
