"""Columns of values – rows of a numpy dtype, or byte strings – and how they are placed in a file, in index order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.lib.format import dtype_to_descr
from numpy.typing import NDArray

from ._compress import block_size_for, compress
from ._encoded import is_strings
from ._format import Section, elias_fano_words
from ._keys import flat, offsets_of
from ._native import lib
from ._strings import Strings, distinct, packed, rows_section, words_section


@dataclass(frozen=True)
class Layout:
    """How byte strings are stored: equal ones once if that takes less space; compressed in blocks."""

    dedupe: bool = False
    compression: str | None = None


PLAIN = Layout()


@dataclass(frozen=True)
class Placed:
    """Values in index order: their part of the schema, and per section its length and its bytes in chunks."""

    values: Any
    value_width: int | None
    sections: dict[Section, tuple[int, Iterable[Any]]]
    extra: dict[str, Any] = field(default_factory=dict)  # more of the schema


class Column(Protocol):
    """The values of all records, as they came."""

    def __len__(self) -> int: ...

    def place(self, order: NDArray[np.uint64], layout: Layout = PLAIN) -> Placed:
        """The values of the records `order`, one per index. `layout` is for byte strings."""


class NoColumn:
    """No values at all."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def place(self, order: NDArray[np.uint64], layout: Layout = PLAIN) -> Placed:
        return Placed(None, None, {})


class ArrayColumn:
    """Elements of a one-dimensional numpy array."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @classmethod
    def concatenate(cls, columns: list[ArrayColumn], kind: Any) -> ArrayColumn:
        return cls(np.concatenate([np.empty(0, value_dtype(kind)), *(part._array for part in columns)]))

    def __len__(self) -> int:
        return len(self._array)

    def place(self, order: NDArray[np.uint64], layout: Layout = PLAIN) -> Placed:
        dtype = self._array.dtype
        rows = rows_section(Section.VALUES, flat(self._array), dtype.itemsize, order)
        return Placed(dtype_to_descr(dtype), dtype.itemsize, {**rows})


class BytesColumn:
    """Byte strings – those of `kind` that values are made of –, stored without offsets if all have one length."""

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.uint64], kind: str = "bytes") -> None:
        self._strings, self._kind = Strings(blob, offsets), kind

    @classmethod
    def concatenate(cls, columns: list[BytesColumn], kind: Any) -> BytesColumn:
        parts = [part._strings for part in columns]
        lengths = np.concatenate([np.empty(0, np.uint64), *(part.lengths() for part in parts)])
        blob = np.concatenate([np.empty(0, np.uint8), *(part.blob for part in parts)])
        return cls(blob, offsets_of(lengths), kind)

    def __len__(self) -> int:
        return len(self._strings)

    def place(self, order: NDArray[np.uint64], layout: Layout = PLAIN) -> Placed:
        extra: dict[str, Any] = {}
        sections: dict[Section, tuple[int, Iterable[Any]]] = {}
        if layout.dedupe and (once := self._once(order)) is not None:
            firsts, ordinals = once
            bits = (len(firsts) - 1).bit_length()
            numbers = packed(ordinals, bits)
            sections[Section.ORDINALS] = len(numbers), [numbers]
            extra["distinct_values"] = len(firsts)
            order = order[firsts]
        if layout.compression is None and not extra:
            width, plain = self._strings.sections(order, Section.VALUES, Section.OFFSETS, Section.BLOB)
            return Placed(self._kind, width, {**plain})
        offsets, chunks = self._strings.in_order(order)
        size = int(offsets[-1])
        sections[Section.OFFSETS] = words_section(elias_fano_words(offsets))
        if layout.compression is None:
            return Placed(self._kind, None, {**sections, Section.BLOB: (size, chunks)}, extra)
        block_size = block_size_for(size, len(order))
        dictionary, blocks = compress(np.concatenate([np.empty(0, np.uint8), *chunks]), block_size)
        starts = offsets_of(np.fromiter(map(len, blocks), np.uint64, len(blocks)))
        sections[Section.BLOB] = int(starts[-1]), blocks
        sections[Section.BLOCKS] = words_section(elias_fano_words(starts))
        sections[Section.DICTIONARY] = len(dictionary), [dictionary]
        extra |= {"compression": layout.compression, "block_size": block_size, "blob_size": size}
        return Placed(self._kind, None, sections, extra)

    def _once(self, order: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
        """The first of equal values and every value's number among these; None if that takes no less space."""
        if not len(order):
            return None
        firsts, ordinals = distinct(self._strings, order)
        sizes = self._strings.lengths()[order]
        apart, once = int(sizes.sum()), int(sizes[firsts].sum())
        if sizes.min() != sizes.max():
            apart += 8 * lib.elias_fano_words(len(order) + 1, apart)
        once += 8 * lib.elias_fano_words(len(firsts) + 1, once)
        once += (len(order) * (len(firsts) - 1).bit_length() + 7) // 8 + 8
        return (firsts, ordinals) if once < apart else None


def concatenate(columns: list[Any], kind: Any) -> Column:
    """The records of several columns of one kind as one column."""
    if kind is None:
        return NoColumn(sum(map(len, columns)))
    return (BytesColumn if is_strings(kind) else ArrayColumn).concatenate(columns, kind)


def value_dtype(kind: Any) -> np.dtype[Any]:
    """The dtype that values of a store have; TypeError if they would hold objects, ValueError if it has no width."""
    try:
        dtype = np.dtype(kind)
    except TypeError as error:
        raise TypeError(f"values are 'bytes', 'str', 'json', None or of a numpy dtype: {error}") from None
    if dtype.hasobject:
        raise TypeError(f"values of {dtype} hold Python objects; a file holds plain bytes only")
    if dtype.subdtype is not None:
        raise TypeError(f"values of {dtype} are arrays: make them a field of a structured dtype")
    if dtype.itemsize == 0:
        raise ValueError(f"values of {dtype} have no width: name one, as in S16, or take values='str' or 'bytes'")
    little: np.dtype[Any] = dtype.newbyteorder("<")
    return little
