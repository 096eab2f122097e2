"""Values: what goes into columns of rows or of byte strings, and how a file's schema names it."""

from __future__ import annotations

import datetime
import operator
from typing import Any

import numpy as np
from numpy.lib.format import descr_to_dtype
from numpy.typing import NDArray

from ._arrow import Columns, columns
from ._columns import ArrayColumn, BytesColumn, Column, NoColumn, value_dtype
from ._encoded import encoder, is_strings
from ._errors import FormatError
from ._format import File, Kind, Section
from ._keys import BytesKeys, offsets_of, refuse_nulls
from ._strings import MAX_WIDTH


class _Bytes(BytesKeys):
    """Values that are byte strings are flattened the way keys are, but `str` is none."""

    text, arrow_kinds = False, ("bytes", "nothing")
    _expected = "values='bytes' takes bytes"

    def one(self, key: object) -> bytes:
        if not isinstance(key, bytes | bytearray | memoryview):
            hint = ": values='str' takes those" if isinstance(key, str) else ""
            raise TypeError(f"{self._expected}, not {type(key).__name__}{hint}")
        return super().one(key)


class _Texts(BytesKeys):
    """Values that are `str`: of Arrow arrays, those of strings."""

    arrow_kinds = ("text", "nothing")
    _expected = "values='str' takes str"


_bytes, _text = _Bytes(), _Texts()


def column(values: Any, kind: Any, count: int) -> Column:
    """The column of `count` records for `values="bytes"`, "str" or "json", a numpy dtype, or None.

    Raises TypeError for a value of another type, ValueError for one of another width, OverflowError for an integer
    that does not fit."""
    if kind is None:
        return NoColumn(count)
    arrow = columns(values)
    values = values if arrow is None else arrow
    if is_strings(kind):
        return _strings_column(values, kind)
    if isinstance(values, Columns):
        values = _numbers(values, kind)
    return ArrayColumn(_as_array(values, value_dtype(kind)))


def flatten_one(value: Any, kind: Any) -> Any:
    """One value as `column` takes it later, checked and no longer changeable."""
    if kind is None:
        return None
    if is_strings(kind):
        return _bytes.one(value) if kind == "bytes" else encoder(kind)(value)
    return _as_array([value], value_dtype(kind))[0]


def _strings_column(values: Any, kind: str) -> BytesColumn:
    if isinstance(values, str | bytes | bytearray | memoryview | dict):
        raise TypeError("values are one per record, not a single one")
    if isinstance(values, Columns):
        if kind == "json":
            raise TypeError("values='json' takes Python objects, not an Arrow array")
        arrow: Any = values
        data, lengths = (_bytes if kind == "bytes" else _text).batch(arrow).spelled_out()
        return BytesColumn(data, offsets_of(lengths))
    values = values if isinstance(values, np.ndarray | list) else list(values)
    if isinstance(values, np.ndarray):
        if kind != "json" and values.dtype.kind not in ("SO" if kind == "bytes" else "UO"):
            raise TypeError(f"values={kind!r} takes {kind}, not an array of {values.dtype}; give its dtype as `values`")
        values = values.tolist()
    if kind == "str" and set(map(type, values)) <= {str}:
        batch = _text.batch(values)
    else:
        batch = _bytes.batch(values if kind == "bytes" else list(map(encoder(kind), values)))
    assert batch.offsets is not None
    return BytesColumn(batch.data, batch.offsets)


def _numbers(values: Columns, kind: Any) -> NDArray[Any]:
    """Of an Arrow array. ValueError for a null."""
    if values.dtype is None and len(values):
        raise TypeError(f"values of {value_dtype(kind)} cannot be made from an Arrow array of {values.of}")
    refuse_nulls(values.nulls())
    return np.empty(0, value_dtype(kind)) if values.dtype is None else values.numbers()


def _as_array(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """`values` as an array of `dtype`, one element per record; nothing is cut off, rounded or wrapped round."""
    given = values if isinstance(values, np.ndarray) else list(values)
    if isinstance(given, np.ndarray) and given.ndim == 0:
        raise TypeError("values are one per record, not a single one")
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        whole = np.asarray(given).reshape(len(given), -1) if len(given) else np.empty((0, int(np.prod(shape))))
        if whole.shape[1] != int(np.prod(shape)):
            raise ValueError(f"a value has {whole.shape[1]} elements, not {shape}")
        return _as_array(whole.reshape(-1), base).reshape(len(given), *shape)
    if dtype.names is not None:
        return _records(given, dtype)
    if isinstance(given, np.ndarray):
        if given.ndim != 1:
            raise ValueError(f"values are one-dimensional, not of shape {given.shape}")
        if given.dtype.kind != "O":
            return _cast(given, dtype)
        given = given.tolist()
    return _from_objects(given, dtype)


def _records(given: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Structured values, field by field: from a structured array of the same names, or from tuples."""
    out = np.zeros(len(given), dtype)
    assert dtype.names is not None
    column_of: Any
    for position, name in enumerate(dtype.names):
        if isinstance(given, np.ndarray) and given.dtype.names is not None:
            if given.dtype.names != dtype.names:
                raise TypeError(f"values of {dtype} cannot be made from {given.dtype}")
            column_of = given[name]
        else:
            for row in given:
                if not isinstance(row, tuple | list | np.void):
                    raise TypeError(f"a value of {dtype} is a tuple, not {type(row).__name__}")
                fields = len(row)  # type: ignore[arg-type]  # np.void has a length, its stub has not
                if fields != len(dtype.names):
                    raise ValueError(f"a value has {fields} fields, not {len(dtype.names)}")
            column_of = [row[position] for row in given]
        out[name] = _as_array(column_of, dtype[name])
    return out


def _cast(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of plain values as another dtype that can hold every one of them."""
    refusal = TypeError(f"values of {dtype} cannot be made from {array.dtype}")
    integers = array.dtype.kind in "iu" and dtype.kind in "iu"
    if not integers and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise refusal
    if any(
        (array.dtype.kind in kinds) != (dtype.kind in kinds) for kinds in ("SU", "mM")
    ):  # numpy would make text of numbers
        raise refusal
    if integers and array.size:
        _check_range(int(array.min()), int(array.max()), dtype)
    if dtype.kind in "SU" and array.size and int(np.char.str_len(array).max()) > _characters(dtype):
        raise ValueError(f"a value is longer than {dtype}")
    if dtype.kind == "V" and array.dtype.itemsize != dtype.itemsize:
        raise ValueError(f"a value has {array.dtype.itemsize} bytes, not {dtype.itemsize}")
    with np.errstate(over="ignore"):
        cast = array.astype(dtype, copy=False)
    if dtype.kind in "fc" and np.any(np.isinf(cast) & np.isfinite(array)):
        raise OverflowError(f"a value is outside {dtype}")
    if dtype.kind in "mM" and np.any((cast.astype(array.dtype) != array) & ~np.isnat(array)):
        raise ValueError(f"a time is outside {dtype} or finer than it")
    return cast


def _from_objects(given: list[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Python objects as plain values of a dtype."""
    if not given:
        return np.empty(0, dtype)
    if dtype.kind in "iu":
        try:
            integers = list(map(operator.index, given))
        except TypeError as error:
            raise TypeError(f"values of {dtype} are integers: {error}") from None
        _check_range(min(integers), max(integers), dtype)
        return np.array(integers, dtype)
    if dtype.kind in "SUV":
        kind = str if dtype.kind == "U" else bytes
        wrong = next(
            (value for value in given if not isinstance(value, kind | np.void if dtype.kind == "V" else kind)), None
        )
        if wrong is not None or None in given:
            raise TypeError(f"values of {dtype} are {kind.__name__}, not {type(wrong).__name__}")
        if dtype.kind == "V":
            for value in given:
                if len(bytes(value)) != dtype.itemsize:
                    raise ValueError(f"a value has {len(bytes(value))} bytes, not {dtype.itemsize}")
            return np.frombuffer(b"".join(map(bytes, given)), dtype)
        if max(map(len, given)) > _characters(dtype):
            raise ValueError(f"a value is longer than {dtype}")
        return np.array(given, dtype)
    array = np.array(given)
    if array.ndim != 1:
        raise ValueError(f"values are one-dimensional, not of shape {array.shape}")
    if array.dtype.kind == "O":
        times = datetime.datetime | datetime.date | datetime.timedelta
        if dtype.kind in "mM" and all(isinstance(value, times) for value in given):
            return np.array(given, dtype)
        if dtype.kind in "fc" and all(isinstance(value, int | float | complex) for value in given):
            return _cast(np.array(given, "f8" if dtype.kind == "f" else "c16"), dtype)  # integers beyond 64 bits
        raise TypeError(f"values of {dtype} cannot be made from {type(given[0]).__name__}")
    return _cast(array, dtype)


def _characters(dtype: np.dtype[Any]) -> int:
    return dtype.itemsize // (4 if dtype.kind == "U" else 1)


def _check_range(least: int, greatest: int, dtype: np.dtype[Any]) -> None:
    bounds = np.iinfo(dtype)
    if least < bounds.min or greatest > bounds.max:
        raise OverflowError(f"a value is outside {dtype}")


def values_of(file: File) -> tuple[memoryview | None, int, NDArray[Any] | None]:
    """Where a file's values lie, None if it has none; their width, -1 if it varies; and the array of them if they
    have a numpy dtype. Raises FormatError unless all that fits together."""
    kind, width = file.schema.get("values"), file.schema.get("value_width")
    if file.header.kind is not Kind.STORE:
        return None, -1, None
    dtype = dtype_from_schema(kind, width)
    if width is None:
        return None if kind is None else file.sections[Section.BLOB], -1, None
    rows, keys = file.sections[Section.VALUES], file.header.keys
    if len(rows) != keys * width:
        raise FormatError("values are not as many or as wide as the header says")
    return rows, int(width), None if dtype is None else np.frombuffer(rows, dtype, keys)


def dtype_from_schema(values: Any, value_width: Any) -> np.dtype[Any] | None:
    """The dtype of a file's fixed-width values; None for byte strings. Raises FormatError unless width and dtype
    agree."""
    if values is None and value_width is None:
        return None
    if is_strings(values):
        if value_width is None or (isinstance(value_width, int) and 0 <= value_width <= MAX_WIDTH):
            return None
        raise FormatError(f"values of {value_width!r} bytes")
    try:
        # JSON has lists where a descr has tuples
        dtype: np.dtype[Any] = descr_to_dtype(_as_descr(values))
    except Exception:
        raise FormatError(f"not a dtype: {values!r}") from None
    if dtype.hasobject or dtype.itemsize != value_width or not dtype.itemsize:
        raise FormatError(f"values of dtype {values!r} and {value_width!r} bytes")
    return dtype


def _as_descr(fields: Any) -> Any:
    if isinstance(fields, list):
        return [
            (tuple(name) if isinstance(name, list) else name, _as_descr(kind), *map(tuple, shape))
            for name, kind, *shape in fields
        ]
    return fields
