"""Compressed values: their blob, uncompressed, is cut into blocks of one size, each a Zstandard frame with a dictionary
that all share (FORMAT.md §7).

Blocks, not values: a frame per value makes the short ones longer than they were, even with a dictionary. On cmudict's
pronunciations, 18.5 bytes each, frames per value take 118 to 126 % of what they hold, blocks of 1 KiB 34 % at 1.7 µs
to decode one, of 4 KiB 32 % at 6 µs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import FormatError, UnavailableError

METHODS = ("zstd",)
SMALLEST_BLOCK, LARGEST_BLOCK = 1 << 10, 1 << 16  # as built; a reader takes any size up to MAX_BLOCK
MAX_BLOCK = 1 << 20
MAX_DICTIONARY = 1 << 24
DICTIONARY = 1 << 14  # bytes, where the values are many
SAMPLE = 1 << 22  # bytes of blocks to train it with
LEVEL = 12


def zstandard() -> Any:
    """The package. Raises UnavailableError where it is not installed."""
    try:
        import zstandard
    except ImportError:
        raise UnavailableError(
            "values compressed with zstd need the package zstandard: pip install zstandard"
        ) from None
    return zstandard


def check_compression(compression: str | None) -> str | None:
    """Raises ValueError for a method that there is not, UnavailableError for one that is not at hand."""
    if compression is not None:
        if compression not in METHODS:
            raise ValueError(f"compression is 'zstd' or None, not {compression!r}")
        zstandard()
    return compression


def block_size_for(size: int, values: int) -> int:
    """Bytes of a block: at least four values of the mean length, a power of two within the bounds."""
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, 1 << (4 * size // max(1, values)).bit_length()))


def compress(blob: NDArray[np.uint8], block_size: int) -> tuple[bytes, list[bytes]]:
    """The dictionary, empty if none is worth its place, and the blocks."""
    zstd = zstandard()
    pieces = [blob[i : i + block_size].tobytes() for i in range(0, len(blob), block_size)]
    trained = _train(zstd, pieces, min(DICTIONARY, len(blob) // 64), block_size)
    options = {} if trained is None else {"dict_data": trained}
    if trained is not None:
        trained.precompute_compress(level=LEVEL)
    compressor = zstd.ZstdCompressor(level=LEVEL, write_checksum=False, write_dict_id=False, **options)
    return b"" if trained is None else trained.as_bytes(), [compressor.compress(piece) for piece in pieces]


def _train(zstd: Any, pieces: list[bytes], size: int, block_size: int) -> Any:
    if size < 1024:
        return None
    step = max(1, len(pieces) * block_size // SAMPLE)
    try:
        return zstd.train_dictionary(size, pieces[::step])
    except zstd.ZstdError:  # too few samples, or nothing in common
        return None


class Blocks:
    """Reads stretches of a blob that is stored in compressed blocks. From any number of threads.

    Memory: a block is decoded only if its frame says the size that it must have, at most MAX_BLOCK; a long stretch is
    put together block by block and fails at the first that is wrong."""

    def __init__(
        self, packed: Any, span: Callable[[int], tuple[int, int]], size: int, block_size: int, dictionary: Any
    ) -> None:
        """packed, dictionary: sections, in memory or Windows. span: where a block's frame begins and ends."""
        self._packed, self._span, self._dictionary = packed, span, dictionary
        self._size, self._block_size = size, block_size
        self._idle: list[Any] = []  # decompressors, which serve one thread at a time
        self._last = -1, b""  # the block that was decoded last

    def read(self, begin: int, end: int) -> bytes:
        """Bytes from `begin` to `end`, both within the blob. Raises FormatError, UnavailableError."""
        if begin == end:
            return b""
        size = self._block_size
        first, last = begin // size, (end - 1) // size
        if first == last:
            return self._block(first)[begin - first * size : end - first * size]
        pieces = [self._block(number) for number in range(first, last + 1)]
        pieces[0] = pieces[0][begin - first * size :]
        pieces[-1] = pieces[-1][: end - last * size]
        return b"".join(pieces)

    def _block(self, number: int) -> bytes:
        known, content = self._last
        if known != number:
            content = self._decoded(number)
            self._last = number, content
        return content

    def _decoded(self, number: int) -> bytes:
        zstd = zstandard()
        begin, end = self._span(number)
        frame = self._packed[begin:end]
        expected = min(self._block_size, self._size - number * self._block_size)
        try:
            if zstd.frame_content_size(frame) != expected:
                raise FormatError(f"block {number} of compressed values has another size")
            decompressor = self._idle.pop() if self._idle else self._new(zstd)
        except IndexError:  # another thread was quicker
            decompressor = self._new(zstd)
        except zstd.ZstdError:
            raise FormatError(f"block {number} of compressed values is damaged") from None
        try:
            content: bytes = decompressor.decompress(frame, max_output_size=expected, allow_extra_data=False)
        except zstd.ZstdError:
            raise FormatError(f"block {number} of compressed values is damaged") from None
        self._idle.append(decompressor)
        if len(content) != expected:
            raise FormatError(f"block {number} of compressed values has another size")
        return content

    def _new(self, zstd: Any) -> Any:
        options = {"dict_data": zstd.ZstdCompressionDict(bytes(self._dictionary))} if len(self._dictionary) else {}
        try:
            return zstd.ZstdDecompressor(max_window_size=MAX_BLOCK, **options)
        except zstd.ZstdError:
            raise FormatError("the dictionary of compressed values is damaged") from None
