"""Producers of the Arrow C data interface made by hand: what they export, and whether it was released, is known.

Their structures are written down here a second time, from the specification."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

P = ctypes.c_void_p


class Schema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", P), ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64), ("children", P), ("dictionary", P), ("release", P), ("private_data", P),
    )  # fmt: skip


class Array(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", P), ("children", P),
        ("dictionary", P), ("release", P), ("private_data", P),
    )  # fmt: skip


class Stream(ctypes.Structure):
    _fields_ = (("get_schema", P), ("get_next", P), ("get_last_error", P), ("release", P), ("private_data", P))


RELEASE = ctypes.CFUNCTYPE(None, P)
NEXT = ctypes.CFUNCTYPE(ctypes.c_int, P, P)
ERROR = ctypes.CFUNCTYPE(P, P)
DESTRUCTOR = ctypes.PYFUNCTYPE(None, P)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, P, ctypes.c_char_p, P)(("PyCapsule_New", ctypes.pythonapi))
_get = ctypes.PYFUNCTYPE(P, P, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_kept: list[Any] = []  # C holds nothing but addresses; a test leaves a few kilobytes behind


def _pointer(callback: Any) -> Any:
    _kept.append(callback)
    return ctypes.cast(callback, P)


class Chunk:
    """An array: a format and buffers as the specification has them."""

    def __init__(
        self,
        form: str,
        length: int,
        buffers: Sequence[bytes | None],
        *,
        offset: int = 0,
        null_count: int = -1,
        dictionary: Chunk | None = None,
    ) -> None:
        self.form, self.length, self.buffers = form, length, buffers
        self.offset, self.null_count, self.dictionary = offset, null_count, dictionary


class Producer:
    """Exports one chunk as an array, or any number as a stream. `alive`: structures that nobody has released.

    fail: the number of the chunk at which a stream fails with errno 5 and `message`."""

    def __init__(
        self, *chunks: Chunk, stream: bool = False, fail: int | None = None, message: bytes | None = b"no more"
    ) -> None:
        self.chunks, self.fail, self.message = chunks, fail, message
        self.alive: list[str] = []
        self.exports = 0
        if stream:
            self.__arrow_c_stream__: Callable[..., Any] = self._stream
        else:
            self.__arrow_c_array__: Callable[..., Any] = self._array

    def _schema(self, chunk: Chunk, owned: bool = True) -> Schema:
        form = ctypes.create_string_buffer(chunk.form.encode())
        schema = Schema(format=ctypes.addressof(form), name=None)
        _kept.append(form)
        if chunk.dictionary is not None:
            schema.dictionary = ctypes.addressof(self._schema(chunk.dictionary, owned=False))
        return self._owned(schema, "schema" if owned else None)

    def _filled(self, chunk: Chunk, owned: bool = True) -> Array:
        memory = [None if part is None else ctypes.create_string_buffer(part, len(part) + 8) for part in chunk.buffers]
        buffers = (P * len(memory))(*[None if part is None else ctypes.addressof(part) for part in memory])
        _kept.extend((memory, buffers))
        array = Array(
            length=chunk.length, offset=chunk.offset, null_count=chunk.null_count, n_buffers=len(memory),
            buffers=ctypes.addressof(buffers),
        )  # fmt: skip
        if chunk.dictionary is not None:
            array.dictionary = ctypes.addressof(self._filled(chunk.dictionary, owned=False))
        wiped = [part for part in memory if part is not None]
        return self._owned(array, "array" if owned else None, wiped)

    def _owned(self, structure: Any, what: str | None, memory: Sequence[Any] = ()) -> Any:
        """Gives a structure its release callback, which spoils its memory."""
        _kept.append(structure)
        if what is not None:
            self.alive.append(what)

            def release(address: int) -> None:
                self.alive.remove(what)
                type(structure).from_address(address).release = None
                for part in memory:
                    ctypes.memset(part, 0xEE, len(part))

            structure.release = _pointer(RELEASE(release))
        return structure

    def _array(self, requested_schema: object = None) -> tuple[Any, Any]:
        self.exports += 1
        (chunk,) = self.chunks
        return self._capsule(self._schema(chunk), b"arrow_schema"), self._capsule(self._filled(chunk), b"arrow_array")

    def _stream(self, requested_schema: object = None) -> Any:
        self.exports += 1
        chunks: Iterator[tuple[int, Chunk]] = iter(enumerate(self.chunks))

        def get_schema(_: int, out: int) -> int:
            schema = self._schema(self.chunks[0])
            ctypes.memmove(out, ctypes.addressof(schema), ctypes.sizeof(schema))
            return 0

        def get_next(_: int, out: int) -> int:
            number, chunk = next(chunks, (None, None))
            if number is not None and number == self.fail:
                return 5
            array = Array() if chunk is None else self._filled(chunk)
            ctypes.memmove(out, ctypes.addressof(array), ctypes.sizeof(array))
            return 0

        message = None if self.message is None else ctypes.create_string_buffer(self.message)
        _kept.append(message)
        stream = Stream(
            get_schema=_pointer(NEXT(get_schema)),
            get_next=_pointer(NEXT(get_next)),
            get_last_error=_pointer(ERROR(lambda _: message and ctypes.addressof(message))),
        )
        return self._capsule(self._owned(stream, "stream"), b"arrow_array_stream")

    def _capsule(self, structure: Any, name: bytes) -> Any:
        def destroy(capsule: int) -> None:
            held = type(structure).from_address(_get(capsule, name))
            if held.release:
                RELEASE(held.release)(ctypes.addressof(held))

        return _new(ctypes.addressof(structure), name, _pointer(DESTRUCTOR(destroy)))
