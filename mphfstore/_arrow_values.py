"""Values as arrays of pyarrow, without an object per value unless they are compressed or stay in the file."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._batch import CHUNK, run, thread_count
from ._errors import FormatError, UnavailableError
from ._format import Section
from ._keys import BytesKeys, KeyBatch, flat, gather, offsets_of
from ._packed import spans_of


def arrow_values(opened: Any, indices: NDArray[np.int64], threads: int | None) -> Any:
    """The values at indices, null where that is negative, as a pyarrow array."""
    try:
        import pyarrow
    except ImportError:
        raise UnavailableError("get_arrow needs pyarrow: pip install pyarrow") from None
    present = indices >= 0
    absent = None if present.all() else ~present
    if opened.values is None:
        kind = pyarrow.large_binary() if opened.file.schema["values"] == "bytes" else pyarrow.large_string()
        strings = _strings(pyarrow, kind, *_bytes_at(opened, indices, threads), absent)
        try:
            strings.validate(full=True)
        except pyarrow.ArrowInvalid:
            raise FormatError("text in the file is not UTF-8") from None
        return strings
    values = np.zeros(len(indices), opened.values.dtype)
    values[present] = opened.values[indices[present]]
    return _array(pyarrow, values, absent)


def _bytes_at(
    opened: Any, indices: NDArray[np.int64], threads: int | None
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Values that are bytes behind one another, and their offsets; what is absent is empty."""
    if opened.apart is not None:
        present, lengths = indices >= 0, np.zeros(len(indices), np.uint64)
        raws = opened.apart.raws(indices[present])
        lengths[present] = np.fromiter(map(len, raws), np.uint64, len(raws))
        return np.frombuffer(b"".join(raws), np.uint8), offsets_of(lengths)
    sections, width, count = opened.file.sections, opened.file.schema["value_width"], len(indices)
    bounds = np.empty((count, 2), np.int64)

    def find(first: int) -> None:
        part = slice(first, first + CHUNK)
        if width is not None:
            bounds[part, 0] = np.maximum(indices[part], 0) * width
            bounds[part, 1] = bounds[part, 0] + np.where(indices[part] < 0, 0, width)
            return
        bounds[part, 0], bounds[part, 1] = spans_of(opened.reader, indices[part])

    def copy(first: int) -> None:
        part = bounds[first : first + CHUNK]
        to = data[offsets[first] : offsets[first + len(part)]]
        to[:] = gather(blob, np.arange(0, 2 * len(part), 2, dtype=np.uint64), len(to), offsets=part.view(np.uint64))

    workers = thread_count(threads, count)
    run([partial(find, first) for first in range(0, count, CHUNK)], workers)
    offsets = offsets_of(np.diff(bounds, axis=1)[:, 0])
    data = np.empty(int(offsets[-1]), np.uint8)
    blob = np.frombuffer(sections[Section.BLOB if width is None else Section.VALUES], np.uint8)
    run([partial(copy, first) for first in range(0, count, CHUNK)], workers)
    return data, offsets


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
        data, lengths = keys.spelled_out()
        strings = pyarrow.large_string() if dtype.kind == "U" else pyarrow.large_binary()
        return _strings(pyarrow, strings, data, offsets_of(lengths), absent)
    try:
        return pyarrow.array(np.ascontiguousarray(values), mask=absent, from_pandas=False)
    except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
        raise TypeError(f"Arrow has no type that is {dtype}") from None


def _strings(
    pyarrow: Any, kind: Any, data: NDArray[np.uint8], offsets: NDArray[np.uint64], absent: NDArray[np.bool_] | None
) -> Any:
    """Strings behind one another, from offset to offset; also null ones."""
    valid = None if absent is None else pyarrow.py_buffer(np.packbits(~absent, bitorder="little"))
    buffers = [valid, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    return pyarrow.Array.from_buffers(kind, len(offsets) - 1, buffers)
