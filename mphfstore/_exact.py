"""Keys that are stored: where they lie in a file, and reading them in the order of their indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrow import Columns
from ._errors import FormatError, contradiction, sound
from ._format import File, Section
from ._keys import IntegerKeys, KeyBatch, KeyType, offsets_of
from ._native import ffi, lib
from ._strings import MAX_WIDTH, Sections, Strings, Words, rows_section

STORAGE = ("fingerprint", "exact")


@dataclass(frozen=True)
class StoredKeys:
    """Keys in index order: their width, None if it varies, and per section its length and its bytes in chunks."""

    width: int | None
    sections: Sections


def all_text(keys: Any) -> bool:
    """Whether every key of a batch is given as `str`."""
    if isinstance(keys, Columns):
        return keys.kind == "text" or not len(keys)
    if isinstance(keys, np.ndarray) and keys.dtype.kind != "O":
        return keys.dtype.kind in "UT"
    return all(isinstance(key, str) for key in keys)


def place_keys(keys: KeyBatch, kind: KeyType, order: Words) -> StoredKeys:
    """The keys of the records `order`, one per index."""
    if kind.size:
        return StoredKeys(kind.size, rows_section(Section.KEYS, keys.data, kind.size, order))
    data, lengths = keys.spelled_out()
    strings = Strings(data, offsets_of(lengths) if keys.offsets is None else keys.offsets)
    return StoredKeys(*strings.sections(order, Section.KEYS, Section.KEY_OFFSETS, Section.KEYS))


def width_of_keys(file: File) -> int | None:
    """Of stored keys; None if it varies. Raises FormatError unless they can have it."""
    width, kind = file.schema.get("key_width"), file.schema.get("key_type")
    if width is not None and not (type(width) is int and 0 <= width <= MAX_WIDTH):
        raise FormatError(f"keys of {width!r} bytes")
    size = IntegerKeys(kind).size if kind not in ("bytes", "str") else None
    if size is not None and size != width:
        raise FormatError(f"keys of type {kind} and {width!r} bytes")
    return width


def attach_keys(reader: Any, file: File, memory: dict[Section, Any]) -> None:
    """Gives a native reader the keys of a file, if it has them. Raises FormatError unless they are as many as they
    should be."""
    if file.schema.get("keys") != "exact":
        return
    width, stored, offsets = width_of_keys(file), memory[Section.KEYS], memory[Section.KEY_OFFSETS]
    status = lib.mphf_reader_keys(
        reader, stored, len(stored), width or 0, ffi.NULL if width is not None else offsets, len(offsets)
    )
    if status != lib.STATUS_OK:
        raise miscounted()


def spell_out_keys(reader: Any, file: File, memory: dict[Any, Any]) -> None:
    """Lets a native reader know where each key begins, if keys vary in length; `memory` keeps that for it."""
    if file.schema.get("keys") == "exact" and width_of_keys(file) is None and len(memory[Section.KEYS]) < 1 << 32:
        bounds = ffi.from_buffer("uint32_t[]", np.zeros(file.header.keys + 1, np.uint32))
        sound(lib.mphf_reader_bounds(reader, bounds))
        memory["bounds"] = bounds


def miscounted() -> FormatError:
    return FormatError("keys are not as many or as wide as the file says")


def raw_keys(reader: Any, stored: Any, begin: int, end: int) -> list[bytes]:
    """The keys from index `begin` to `end`, as they are stored."""
    starts, ends = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    pointers = (ffi.from_buffer("int64_t[]", one) for one in (starts, ends))
    sound(lib.mphf_key_span_batch(reader, begin, end - begin, *pointers))
    return [stored[first:last].tobytes() for first, last in zip(starts.tolist(), ends.tolist(), strict=True)]


def stored_batch(reader: Any, file: File) -> KeyBatch:
    """All keys of a file in memory, where they lie. Raises FormatError if their offsets contradict each other."""
    data, count, width = np.frombuffer(file.sections[Section.KEYS], np.uint8), file.header.keys, width_of_keys(file)
    if width is not None:
        return KeyBatch(data, count, width=width)
    starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    pointers = (ffi.from_buffer("int64_t[]", one) for one in (starts, ends))
    sound(lib.mphf_key_span_batch(reader, 0, count, *pointers))
    if not np.array_equal(starts[1:], ends[:-1]):
        raise contradiction()
    bounds = np.concatenate([starts[:1], ends]) if count else np.zeros(1, np.int64)
    return KeyBatch(data, count, bounds.astype(np.uint64))


def dtype_of_keys(file: File, kind: KeyType) -> np.dtype[Any]:
    """Of all keys as an array: integers, or strings of one width. TypeError where they have none."""
    if isinstance(kind, IntegerKeys):
        integers: np.dtype[Any] = kind.dtype
        return integers
    width = file.schema.get("key_width")
    if not width:
        raise TypeError("keys of this store differ in length and are no array: iterate over keys()")
    return np.dtype(f"S{width}")
