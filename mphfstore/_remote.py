"""Data sections that stay in the file (mode "pread"): fingerprints, stored keys, offsets, ordinals and values, of one
key or of a batch, read by position.

A batch's reads are sorted, neighbours are read at once, and the system hears of the next ones beforehand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ._encoded import decode_text, decoder
from ._errors import contradiction
from ._exact import miscounted, width_of_keys
from ._format import File, Section
from ._native import lib
from ._packed import Packed, variable
from ._source import Window
from ._values import dtype_from_schema

GAP = 1 << 14  # bytes between two pieces that are rather read than skipped
LONGEST = 1 << 20  # bytes of pieces that are read at once
AHEAD = 64  # reads that the system hears of beforehand

LONG, SHORT, FAR = lib.ELIAS_FANO_LONG, lib.ELIAS_FANO_SHORT, lib.ELIAS_FANO_FAR

Indices = NDArray[np.int64]


def runs(window: Window, begins: Indices, ends: Indices) -> Iterator[tuple[Indices, int, bytes]]:
    """Reads pieces – from begins[i] to ends[i] – in a few runs. Yields which pieces lie in a run, where in the window
    it begins, and its bytes."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    cuts = [0, *(np.flatnonzero(begins[1:] > ends[:-1] + GAP) + 1).tolist(), len(order)]
    parts: list[tuple[int, int]] = []
    for first, last in itertools.pairwise(cuts):
        while first < last:
            fitting = first + int(np.searchsorted(begins[first:last], begins[first] + LONGEST))
            parts.append((first, fitting))
            first = fitting
    for i, (first, last) in enumerate(parts):
        if i % AHEAD == 0 and i + 1 < len(parts):
            for begin, end in parts[i : i + AHEAD]:
                window.advise(int(begins[begin]), int(ends[end - 1] - begins[begin]))
        at = int(begins[first])
        yield order[first:last], at, window.read(at, int(ends[last - 1]) - at)


def rows_at(window: Window, begins: Indices, width: int) -> NDArray[np.uint8]:
    """The `width` > 0 bytes from each of `begins` on, a row each."""
    out = np.empty((len(begins), width), np.uint8)
    for pieces, at, run in runs(window, begins, begins + width):
        out[pieces] = sliding_window_view(np.frombuffer(run, np.uint8), width)[begins[pieces] - at]
    return out


def numbers(rows: NDArray[np.uint8], at: Indices, bits: int) -> NDArray[np.uint64]:
    """The number of `bits` < 64 bits at bit at[i] of row i. A row reaches to the end of its number."""
    words = np.zeros((len(rows), rows.shape[1] // 8 + 2), "<u8")
    words.view(np.uint8)[:, : rows.shape[1]] = rows
    row, word = np.arange(len(rows)), at >> 6
    low, high = words[row, word], words[row, word + 1]
    shift = (at & 63).astype(np.uint64)
    both = low >> shift | (high << np.uint64(1)) << (np.uint64(63) - shift)
    found: NDArray[np.uint64] = both & np.uint64((1 << bits) - 1)
    return found


class Numbers:
    """`count` of them one after the other, of `bits` < 58 bits each, before 8 bytes of zeros: section 16 or 22."""

    def __init__(self, section: Window, count: int, bits: int) -> None:
        if len(section) != (count * bits + 7) // 8 + 8:
            raise contradiction()
        self._section, self._bits = section, bits
        self._width = (bits + 7) // 8 + 1  # bytes in which one lies, wherever it begins

    def one(self, index: int) -> int:
        at = index * self._bits
        stored = int.from_bytes(self._section.read(at // 8, self._width), "little") >> at % 8
        return stored & (1 << self._bits) - 1

    def many(self, indices: Indices) -> NDArray[np.uint64]:
        at = indices * self._bits
        return numbers(rows_at(self._section, at >> 3, self._width), at & 7, self._bits)


class Fingerprints:
    """Section 16: of `bits` > 0 bits each."""

    def __init__(self, section: Window, keys: int, bits: int) -> None:
        self._numbers, self._mask = Numbers(section, keys, bits), (1 << bits) - 1

    def match(self, index: int, hi: int) -> bool:
        """Whether the fingerprint at an index is that of a hash."""
        return self._numbers.one(index) == hi & self._mask

    def matching(self, indices: Indices, hi: NDArray[np.uint64]) -> NDArray[np.bool_]:
        match: NDArray[np.bool_] = self._numbers.many(indices) == hi & np.uint64(self._mask)
        return match


class Offsets:
    """Sections 18, 21 and 23: where values, keys or blocks begin and end. The samples, 10 bits per 256,
    are in memory."""

    def __init__(self, section: Window, values: int, end: int) -> None:
        count = values + 1
        low = (end // count).bit_length() - 1 if end >= count else 0
        groups = -(-count // SHORT)
        words = [2, -(-count // LONG), -(-groups // 4), -(-count * low // 64) + 1, -(-(count + (end >> low)) // 64)]
        starts = np.cumsum([0, *words]) * 8
        if len(section) != starts[-1] or np.frombuffer(section[:16], "<u8").tolist() != [count, end]:
            raise contradiction()
        long, short = (np.frombuffer(section[starts[i] : starts[i + 1]], kind) for i, kind in ((1, "<u8"), (2, "<u2")))
        bits = words[4] * 64
        if int(long.max()) >= bits:
            raise contradiction()
        self._low, self._end, self._bits = low, end, bits
        self._lower = section.window(int(starts[3]), words[3] * 8)
        self._upper = section.window(int(starts[4]), words[4] * 8)
        # A sample at the end, and none after it that is far: what lies before the end of `upper` is before it.
        self._long = np.append(long.astype(np.int64), bits - 1)
        self._short = np.append(short[:groups], np.uint16(FAR)).astype(np.int64)

    def span(self, index: int) -> tuple[int, int]:
        """Begin and end of one value, as `spans` has them: Python's integers are quicker for one."""
        group, long, low = index // SHORT, index // LONG, self._low
        near, next_near = int(self._short[group]), int(self._short[group + 1])
        begin = int(self._long[long]) + (0 if near == FAR else near)
        rank = index % (LONG if near == FAR else SHORT)
        end = int(self._long[long + 1] if next_near == FAR else self._long[(group + 1) // (LONG // SHORT)] + next_near)
        if not begin <= end < self._bits:
            raise contradiction()
        run = np.frombuffer(self._upper.read(begin // 8, end // 8 + 1 - begin // 8), np.uint8)
        places = np.flatnonzero(np.unpackbits(run, bitorder="little")[begin % 8 :])
        if rank + 1 >= len(places):
            raise contradiction()
        high, high_after = begin + int(places[rank]) - index, begin + int(places[rank + 1]) - index - 1
        bits = index * low
        both = int.from_bytes(self._lower.read(bits // 8, (2 * low + 7) // 8 + 1), "little") >> bits % 8
        value, after = (part & (1 << low) - 1 for part in (both, both >> low))
        value, after = high << low | value, high_after << low | after
        if not 0 <= value <= after <= self._end:
            raise contradiction()
        return value, after

    def spans(self, indices: Indices) -> tuple[Indices, Indices]:
        """Begins and ends of the values at some indices. Raises FormatError where the sequence is none."""
        group, long = indices // SHORT, indices // LONG
        far = self._short[group] == FAR
        begins = self._long[long] + np.where(far, 0, self._short[group])
        rank = np.where(far, indices % LONG, indices % SHORT)
        # The one after the value's own lies at the next sample, or before it.
        after = (group + 1) // (LONG // SHORT)
        far = self._short[group + 1] == FAR
        ends = np.where(far, self._long[long + 1], self._long[after] + self._short[group + 1])
        if np.any(begins > ends) or np.any(ends >= self._bits):
            raise contradiction()
        ones = np.empty((2, len(indices)), np.int64)
        for pieces, start, run in runs(self._upper, begins >> 3, (ends >> 3) + 1):
            places = np.flatnonzero(np.unpackbits(np.frombuffer(run, np.uint8), bitorder="little")) + 8 * start
            first = np.searchsorted(places, begins[pieces]) + rank[pieces]
            if len(places) < 2 or np.any(first + 1 >= len(places)):
                raise contradiction()
            ones[0, pieces], ones[1, pieces] = places[first], places[first + 1]
        high: Indices = ones - indices - np.array([[0], [1]])
        if np.any(high < 0):
            raise contradiction()
        values = high << self._low
        if self._low:
            at = indices * self._low
            rows = rows_at(self._lower, at >> 3, (2 * self._low + 7) // 8 + 1)
            values[0] |= numbers(rows, at & 7, self._low).astype(np.int64)
            values[1] |= numbers(rows, (at & 7) + self._low, self._low).astype(np.int64)
        if np.any(values[0] > values[1]) or np.any(values[1] > self._end):
            raise contradiction()
        return values[0], values[1]


class Once:
    """Sections 22 and 18: where values that are stored once begin and end, by the ordinals that indices have."""

    def __init__(self, ordinals: Numbers, offsets: Offsets, distinct: int) -> None:
        self._ordinals, self._offsets, self._distinct = ordinals, offsets, distinct

    def span(self, index: int) -> tuple[int, int]:
        ordinal = self._ordinals.one(index)
        if ordinal >= self._distinct:
            raise contradiction()
        return self._offsets.span(ordinal)

    def spans(self, indices: Indices) -> tuple[Indices, Indices]:
        ordinals = self._ordinals.many(indices).astype(np.int64)
        if np.any(ordinals >= self._distinct):
            raise contradiction()
        return self._offsets.spans(ordinals)


Decode = Callable[[bytes], Any] | None  # makes a value of its bytes, if these are not the value


class Rows:
    """Section 17 or 20: values or keys of one width. `[index]` is one, `[array of indices]` a list or, with a dtype,
    as a slice, an array."""

    def __init__(self, section: Window, width: int, dtype: np.dtype[Any] | None, decode: Decode = None) -> None:
        self._section, self._width, self.dtype, self._decode = section, width, dtype, decode

    def raw(self, index: int) -> bytes:
        """The bytes of one."""
        return self._section.read(index * self._width, self._width)

    def raws(self, indices: Indices) -> list[bytes]:
        """The bytes of several."""
        if not self._width:
            return [b""] * len(indices)
        return [row.tobytes() for row in rows_at(self._section, indices * self._width, self._width)]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            begin, end, _ = index.indices(len(self._section) // self._width)
            return np.frombuffer(self._section[begin * self._width : end * self._width], self.dtype)
        if not isinstance(index, np.ndarray):
            if self.dtype is not None:
                return np.frombuffer(self.raw(index), self.dtype)[0]
            return self.raw(index) if self._decode is None else self._decode(self.raw(index))
        if self.dtype is not None:
            return rows_at(self._section, index * self._width, self._width).reshape(-1).view(self.dtype)
        return self.raws(index) if self._decode is None else list(map(self._decode, self.raws(index)))

    def whole(self) -> NDArray[Any]:
        """All values; `dtype` is not None."""
        return np.frombuffer(self._section.in_memory(), self.dtype)


class Blob:
    """Section 19 or 20 with offsets: values or keys of any length. `[index]` is one, `[array of indices]` a list."""

    dtype = None

    def __init__(self, section: Window, offsets: Offsets | Once, decode: Decode = None) -> None:
        self._section, self._offsets, self._decode = section, offsets, decode

    def raw(self, index: int) -> bytes:
        """The bytes of one."""
        begin, end = self._offsets.span(index)
        return self._section.read(begin, end - begin)

    def raws(self, indices: Indices) -> list[bytes]:
        """The bytes of several."""
        begins, ends = self._offsets.spans(indices)
        values = [b""] * len(indices)
        for pieces, at, run in runs(self._section, begins, ends):
            for i in pieces.tolist():
                values[i] = run[begins[i] - at : ends[i] - at]
        return values

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, np.ndarray):
            return self.raw(index) if self._decode is None else self._decode(self.raw(index))
        return self.raws(index) if self._decode is None else list(map(self._decode, self.raws(index)))


def values_in(file: File) -> Rows | Blob | Packed | None:
    """The values of a file, None if it has none. Raises FormatError unless all that fits together."""
    sections, keys, kind = file.sections, file.header.keys, file.schema.get("values")
    width: Any = file.schema.get("value_width")
    dtype, shape, decode = dtype_from_schema(kind, width), variable(file), decoder(kind)
    decode = decode_text if decode is str else decode
    if Section.VALUES in sections:
        if len(sections[Section.VALUES]) != keys * width:
            raise contradiction()
        return Rows(sections[Section.VALUES], width, dtype, decode)
    if shape is None:
        return None
    blob, distinct = sections[Section.BLOB], shape.distinct
    own = Offsets(sections[Section.OFFSETS], keys if distinct is None else distinct, shape.size)
    offsets: Offsets | Once = own
    if distinct is not None:
        ordinals = Numbers(sections[Section.ORDINALS], keys, (distinct - 1).bit_length())
        offsets = Once(ordinals, own, distinct)
    if shape.blocks is None:
        return Blob(blob, offsets, decode)
    starts = Offsets(sections[Section.BLOCKS], shape.blocks, len(blob))
    return Packed(file, starts.span, offsets.span, offsets.spans, decode)


def keys_in(file: File) -> Rows | Blob | None:
    """The stored keys of a file as bytes, None if it has none. Raises FormatError unless all that fits together."""
    if file.schema.get("keys") != "exact":
        return None
    width, section, keys = width_of_keys(file), file.sections[Section.KEYS], file.header.keys
    if width is None:
        return Blob(section, Offsets(file.sections[Section.KEY_OFFSETS], keys, len(section)))
    if len(section) != keys * width:
        raise miscounted()
    return Rows(section, width, None)
