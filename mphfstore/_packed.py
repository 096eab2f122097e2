"""Variable values of an opened file: offsets, ordinals and compressed blocks, checked and given to the reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._compress import MAX_BLOCK, MAX_DICTIONARY, METHODS, Blocks
from ._encoded import is_strings
from ._errors import FormatError, contradiction, sound
from ._format import File, Section
from ._native import ffi, lib

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Variable:
    """What a schema says of variable values. `size`: bytes that their offsets lead to; `distinct`: None if every index
    has a value of its own; `blocks`: None unless they are compressed."""

    size: int
    distinct: int | None = None
    blocks: int | None = None


def variable(file: File) -> Variable | None:
    """None if there are no variable values. Raises FormatError unless the schema agrees with itself and the file."""
    schema, sections = file.schema, file.sections
    distinct, compression = schema.get("distinct_values"), schema.get("compression")
    if distinct is None and compression is None and Section.OFFSETS not in sections:
        return None
    if not is_strings(schema.get("values")) or Section.OFFSETS not in sections:
        raise FormatError(f"values {schema.get('values')!r} of different widths, compressed or stored once")
    if distinct is not None and not (_is_size(distinct) and 0 < distinct <= min(file.header.keys, 1 << 57)):
        raise FormatError(f"{distinct!r} distinct values")
    if compression is None:
        return Variable(len(sections[Section.BLOB]), distinct)
    size: Any = schema.get("blob_size")
    block_size: Any = schema.get("block_size")
    if compression not in METHODS or not _is_size(size) or not _is_size(block_size) or not 0 < block_size <= MAX_BLOCK:
        raise FormatError(f"values compressed by {compression!r}: {size!r} bytes in blocks of {block_size!r}")
    if len(sections[Section.DICTIONARY]) > MAX_DICTIONARY:
        raise FormatError("the dictionary of compressed values is too large")
    return Variable(size, distinct, -(-size // block_size))


class Packed:
    """Compressed values. `[index]` is one, `[array of indices]` a list.

    block: where in its section a block begins and ends. span, spans: where in the blob a value does; arrays of
    where several do. decode: makes a value of its bytes if these are not the value."""

    dtype = None

    def __init__(
        self,
        file: File,
        block: Callable[[int], tuple[int, int]],
        span: Callable[[int], tuple[int, int]],
        spans: Callable[[Indices], tuple[Indices, Indices]],
        decode: Callable[[bytes], Any] | None,
    ) -> None:
        self._span, self._spans, self._decode = span, spans, decode
        self.size: int = file.schema["blob_size"]  # of all that are stored, uncompressed
        sections = file.sections
        self._blocks = Blocks(
            sections[Section.BLOB], block, self.size, file.schema["block_size"], sections[Section.DICTIONARY]
        )

    def value(self, begin: int, end: int) -> Any:
        """The value of those bytes. Raises FormatError, UnavailableError."""
        raw = self._blocks.read(begin, end)
        return raw if self._decode is None else self._decode(raw)

    def raw(self, index: int) -> bytes:
        """A value's bytes."""
        return self._blocks.read(*self._span(index))

    def raws(self, indices: Indices) -> list[bytes]:
        """The bytes of several, in the order of blocks: each is decoded once."""
        starts, ends = self._spans(indices)
        values = [b""] * len(indices)
        order = np.argsort(starts, kind="stable")
        for position, begin, end in zip(order.tolist(), starts[order].tolist(), ends[order].tolist(), strict=True):
            values[position] = self._blocks.read(begin, end)
        return values

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, np.ndarray):
            return self.value(*self._span(index))
        return self.raws(index) if self._decode is None else list(map(self._decode, self.raws(index)))


def attach_values(reader: Any, file: File, memory: dict[Section, Any], decode: Any) -> Packed | None:
    """Gives a native reader what it needs of variable values; them themselves if they are compressed. Raises
    FormatError unless all that fits together."""
    shape = variable(file)
    if shape is None:
        return None
    ordinals, starts, offsets = (memory[kind] for kind in (Section.ORDINALS, Section.BLOCKS, Section.OFFSETS))
    distinct = shape.distinct
    if distinct is not None and lib.mphf_reader_ordinals(reader, ordinals, len(ordinals), distinct) != lib.STATUS_OK:
        raise FormatError(f"{distinct!r} distinct values")
    if shape.blocks is not None:
        sound(lib.mphf_reader_blocks(reader, starts, len(starts), shape.blocks, len(file.sections[Section.BLOB])))
    sound(lib.mphf_reader_offsets(reader, offsets, len(offsets), shape.size))
    if shape.blocks is None:
        return None
    return Packed(
        file,
        lambda block: _ends(lib.mphf_block_span(reader, block)),
        lambda index: span_of(reader, index),
        lambda indices: spans_of(reader, indices),
        decode,
    )


def span_of(reader: Any, index: int) -> tuple[int, int]:
    """Where in the blob a value begins and ends."""
    return _ends(lib.mphf_span(reader, index))


def spans_of(reader: Any, indices: Indices) -> tuple[Indices, Indices]:
    """The same for several; from 0 to 0 for indices below 0."""
    starts, ends = np.empty(len(indices), np.int64), np.empty(len(indices), np.int64)
    pointers = (ffi.from_buffer("int64_t[]", one) for one in (indices, starts, ends))
    sound(lib.mphf_span_batch(reader, len(indices), *pointers))
    return starts, ends


def _ends(span: Any) -> tuple[int, int]:
    if span.begin < 0:
        raise contradiction()
    return span.begin, span.end


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 62
