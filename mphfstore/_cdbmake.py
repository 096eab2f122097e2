"""The text that cdbmake reads and cdbdump writes: a record is `+klen,dlen:key->data` and a newline, an empty line ends
them. Lengths are in bytes, keys and data may hold anything. Positions are bytes from 0, a record's is that of its `+`.

Source: Daniel J. Bernstein's cdb, `cdbmake`. This reader takes nothing but that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NoReturn

from ._records import BadRecord, Chunk, Kind, Record, shown
from ._text import rows

HEAD = re.compile(rb"\+([0-9]{1,19}),([0-9]{1,19}):")
LONGEST_HEAD = 42
BLOCK = 1 << 18


class _Window:
    """A stretch of a stream: what was read of it and not yet used."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.data, self.at, self._start = b"", 0, 0

    @property
    def position(self) -> int:
        return self._start + self.at

    def fill(self, size: int) -> int:
        """How many bytes there are from `at` on: at least `size`, unless the stream ends. A length that lies about
        the file costs no more memory than the file has."""
        have = len(self.data) - self.at
        if have < size:
            parts = [self.data[self.at :]]
            while have < size and (block := self._file.read(BLOCK)):
                parts.append(block)
                have += len(block)
            self._start += self.at
            self.data, self.at = b"".join(parts), 0
        return have


def cdbmake(file: BinaryIO) -> Iterator[Record]:
    """Raises BadRecord at the byte that is not as it has to be."""
    window = _Window(file)
    while True:
        have = window.fill(LONGEST_HEAD)
        start, at = window.position, window.at
        head = HEAD.match(window.data, at)
        if head is None:
            if have and window.data[at] == 0x0A:
                if have > 1:
                    raise BadRecord(start + 1, "something follows the empty line that ends the records")
                return
            _refuse_head(window.data[at : at + LONGEST_HEAD], start)
        key_size, data_size, skip = int(head[1]), int(head[2]), head.end() - at
        whole = skip + key_size + 2 + data_size + 1
        have = window.fill(whole)
        data, at = window.data, window.at
        key_at = at + skip
        arrow_at = key_at + key_size
        value_at = arrow_at + 2
        end = value_at + data_size
        parts = (("the key", key_at, key_size), ("'->'", arrow_at, 2), ("the data", value_at, data_size))
        for name, begin, size in parts:
            part = data[begin : begin + size]
            if name == "'->'" and not b"->".startswith(part):
                raise BadRecord(start + begin - at, f"expected '->' after the key, got {shown(part)}")
            if len(part) < size:
                raise BadRecord(start + have, f"the file ends within {name}: expected {size} bytes, got {len(part)}")
        if data[end : end + 1] != b"\n":
            got = shown(data[end : end + 1]) if end < len(data) else "the end of the file"
            raise BadRecord(start + end - at, f"expected a newline after the data, got {got}")
        yield start, data[key_at:arrow_at], data[value_at:end]
        window.at = end + 1


def _refuse_head(text: bytes, start: int) -> NoReturn:
    """Finds the byte at which this is no head of a record."""
    at = 0
    for what, after in (("+", ""), ("a length of the key", ","), ("a length of the data", ":")):
        if after:
            digits = re.match(rb"[0-9]*", text[at:])
            assert digits is not None
            if len(digits[0]) > 19:
                raise BadRecord(start + at, f"{what} of more than 19 digits")
            if not digits[0]:
                break
            at, what = at + len(digits[0]), repr(after)
        if text[at : at + 1] != (after or what).encode():
            what = what if after else "'+' or the empty line that ends the records"
            break
        at += 1
    got = shown(text[at : at + 1]) if at < len(text) else "the end of the file"
    raise BadRecord(start + at, f"expected {what}, got {got}")


def write_cdbmake(out: BinaryIO, chunks: Iterable[Chunk], kind: Kind) -> None:
    """A store without values has records of no data."""
    for chunk in chunks:
        out.write(b"".join(_record(*row) for row in rows(chunk, kind)))
    out.write(b"\n")


def _record(key: bytes, data: bytes = b"") -> bytes:
    return b"+%d,%d:%b->%b\n" % (len(key), len(data), key, data)
