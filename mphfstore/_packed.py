"""Variable values of an opened file: offsets, ordinals and compressed blocks, checked and given to the reader."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._compress import MAX_BLOCK, MAX_DICTIONARY, METHODS, Blocks
from ._encoded import decode_text, decoder, is_strings
from ._errors import FormatError
from ._format import File, Section
from ._native import ffi, lib


class Packed:
    """Compressed values. `size`: bytes of all that are stored, uncompressed."""

    def __init__(self, reader: Any, file: File) -> None:
        self._reader, self._file = reader, file
        self.size: int = file.schema["blob_size"]
        decode = decoder(file.schema["values"])
        self._decode = decode_text if decode is str else decode
        self._blocks = Blocks(
            file.sections[Section.BLOB], lambda number: lib.mphf_block_span(reader, number), self.size,
            file.schema["block_size"], file.sections[Section.DICTIONARY],
        )  # fmt: skip

    def value(self, begin: int, end: int) -> Any:
        """The value of those bytes. Raises FormatError, UnavailableError."""
        raw = self._blocks.read(begin, end)
        return raw if self._decode is None else self._decode(raw)

    def values_at(self, indices: NDArray[np.int64], absent: object) -> list[Any]:
        """The values at indices, `absent` for those below 0. In the order of blocks: each is decoded once."""
        starts, ends = np.empty(len(indices), np.int64), np.empty(len(indices), np.int64)
        pointers = (ffi.from_buffer("int64_t[]", one) for one in (indices, starts, ends))
        if lib.mphf_span_batch(self._reader, len(indices), *pointers) != lib.STATUS_OK:
            raise FormatError("the file contradicts itself: it was not written by mphfstore")
        values: list[Any] = [absent] * len(indices)
        order = np.argsort(starts, kind="stable")
        order = order[indices[order] >= 0]
        for position, begin, end in zip(order.tolist(), starts[order].tolist(), ends[order].tolist(), strict=True):
            values[position] = self.value(begin, end)
        return values

    def joined(self, bounds: NDArray[np.int64], offsets: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """The bytes of values, from bounds[i, 0] to bounds[i, 1], to offsets[i] on."""
        data = np.empty(int(offsets[-1]), np.uint8)
        for i in np.argsort(bounds[:, 0], kind="stable").tolist():
            data[offsets[i] : offsets[i + 1]] = np.frombuffer(self._blocks.read(*bounds[i].tolist()), np.uint8)
        return data


def attach_values(reader: Any, file: File, memory: dict[Section, Any]) -> Packed | None:
    """Gives a native reader what it needs of variable values; their blocks if they are compressed. Raises FormatError
    unless all that fits together."""
    schema, sections = file.schema, file.sections
    distinct, compression = schema.get("distinct_values"), schema.get("compression")
    if distinct is None and compression is None and Section.OFFSETS not in sections:
        return None
    if not is_strings(schema.get("values")) or Section.OFFSETS not in sections:
        raise FormatError(f"values {schema.get('values')!r} of different widths, compressed or stored once")
    if distinct is not None:
        ordinals = memory[Section.ORDINALS]
        if (
            not _is_size(distinct)
            or lib.mphf_reader_ordinals(reader, ordinals, len(ordinals), distinct) != lib.STATUS_OK
        ):
            raise FormatError(f"{distinct!r} distinct values")
    size: Any = len(sections[Section.BLOB])
    if compression is not None:
        block_size: Any = schema.get("block_size")
        size = schema.get("blob_size")
        if (
            compression not in METHODS
            or not _is_size(size)
            or not _is_size(block_size)
            or not 0 < block_size <= MAX_BLOCK
        ):
            raise FormatError(f"values compressed by {compression!r}: {size!r} bytes in blocks of {block_size!r}")
        if len(sections[Section.DICTIONARY]) > MAX_DICTIONARY:
            raise FormatError("the dictionary of compressed values is too large")
        starts, blocks = memory[Section.BLOCKS], -(-size // block_size)
        _sound(lib.mphf_reader_blocks(reader, starts, len(starts), blocks, len(sections[Section.BLOB])))
    offsets = memory[Section.OFFSETS]
    _sound(lib.mphf_reader_offsets(reader, offsets, len(offsets), size))
    return None if compression is None else Packed(reader, file)


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 62


def _sound(status: int) -> None:
    if status != lib.STATUS_OK:
        raise FormatError("the file contradicts itself: it was not written by mphfstore")
