"""Where the bytes of a file come from: a path, a file object, a package resource or a buffer; mapped, read into memory,
or read when they are asked for."""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._errors import FormatError

MODES = ("mmap", "pread", "ram")
CHUNK = 1 << 24  # bytes that are read at a time where they are copied on


class Descriptor:
    """A file's descriptor, closed with the last reference to it. While it is open, no new file gets its inode."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


class Window:
    """A stretch of a file that stays in the file: a slice of it is read by position, into memory of its own.

    That works from any number of threads and forked processes. Raises OSError, and FormatError if the file has become
    shorter than it was when it was opened."""

    def __init__(self, file: Descriptor, begin: int, length: int) -> None:
        self._file, self._begin, self._length = file, begin, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> memoryview:
        begin, end, _ = part.indices(self._length)
        return memoryview(self.read(begin, max(0, end - begin)))

    def __bytes__(self) -> bytes:
        return self.read(0, self._length)

    def window(self, begin: int, length: int) -> Window:
        """A stretch of this one."""
        return Window(self._file, self._begin + begin, length)

    def read(self, begin: int, length: int) -> bytes:
        """`length` bytes from `begin` on; the caller has checked that they lie inside."""
        at = self._begin + begin
        got = os.pread(self._file.number, length, at) if length else b""
        if len(got) == length:
            return got
        parts = [got]  # the system reads 2 GiB at most, or what it has so far
        while got and (length := length - len(got)):
            at += len(got)
            got = os.pread(self._file.number, length, at)
            parts.append(got)
        if length:
            raise FormatError(f"the file was truncated while it was open: {length} bytes are missing from {at} on")
        return b"".join(parts)

    def advise(self, begin: int, length: int) -> None:
        """Says that these bytes will be read soon."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.number, self._begin + begin, length, os.POSIX_FADV_WILLNEED)

    def in_memory(self) -> memoryview:
        """All of it, read-only, from a multiple of 8 on."""
        memory = np.empty(self._length, np.uint8)
        for begin in range(0, self._length, CHUNK):
            part = self[begin : begin + CHUNK]
            memory[begin : begin + len(part)] = part
        return memory.data.toreadonly()


Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class Source:
    """The bytes of a file, and how to come by its successor's."""

    data: memoryview | Window
    mode: str = "mmap"
    name: str | None = None  # of the file as it was given; None: it has no path
    path: str | None = None  # absolute: the process may go elsewhere
    stamp: Stamp | None = None
    file: Descriptor | None = None

    @classmethod
    def of(cls, source: Any, mode: str) -> Source:
        """From whatever `mphfstore.open` takes."""
        if mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
        if isinstance(source, str | os.PathLike):
            return cls.at(os.fsdecode(source), mode)
        try:
            view = memoryview(source)
        except TypeError:
            return cls._read(source, mode)
        if mode == "ram":
            view = memoryview(np.array(np.frombuffer(flat(view), np.uint8)).data)
        return cls(aligned(view), mode)

    @classmethod
    def at(cls, name: str, mode: str) -> Source:
        """From a path."""
        file = Descriptor(os.open(name, os.O_RDONLY | os.O_CLOEXEC))
        return cls._of_file(file, mode, name, os.path.abspath(name))

    @classmethod
    def _of_file(cls, file: Descriptor, mode: str, name: str | None = None, path: str | None = None) -> Source:
        status = os.fstat(file.number)
        if status.st_size == 0:  # which mmap refuses with a message of its own
            raise FormatError("empty file")
        window = Window(file, 0, status.st_size)
        data: memoryview | Window = window
        if mode == "mmap":
            data = memoryview(mmap.mmap(file.number, 0, access=mmap.ACCESS_READ))
        elif mode == "ram":
            data = window.in_memory()
        # A mapping keeps the inode of its own accord.
        return cls(data, mode, name, path, _stamp(status), None if mode == "mmap" else file)

    @classmethod
    def _read(cls, source: Any, mode: str) -> Source:
        """From a file object or a resource without a path."""
        raw = getattr(source, "raw", source)  # below a buffered reader or writer
        if isinstance(raw, io.FileIO):  # others that have a descriptor may decompress what lies behind it
            if source.writable():
                source.flush()
            return cls._of_file(Descriptor(os.dup(raw.fileno())), mode)
        if hasattr(source, "read_bytes"):
            content = source.read_bytes()
        elif hasattr(source, "read"):
            content = _content(source)
        else:
            raise TypeError(
                f"a file is opened by path, as binary file object or as buffer, not {type(source).__name__}"
            )
        if isinstance(content, str):
            raise TypeError("a file object in text mode: open it in binary mode")
        return cls(aligned(content), mode)

    def stale(self) -> bool:
        """Whether the path leads to another file by now, to a changed one or to none. False without a path."""
        if self.path is None:
            return False
        try:
            return _stamp(os.stat(self.path)) != self.stamp
        except (FileNotFoundError, NotADirectoryError):
            return True

    def again(self) -> Source:
        """From the same path, opened anew."""
        assert self.path is not None
        file = Descriptor(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC))
        return self._of_file(file, self.mode, self.name, self.path)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _content(file: Any) -> Any:
    """All of a file object, which keeps its position; of one that cannot seek, what is left."""
    if not file.seekable():
        return file.read()
    position = file.tell()
    file.seek(0)
    content = file.read()
    file.seek(position)
    return content


def loaded(section: Any) -> Any:
    """A section's bytes: read, if they have stayed in the file."""
    return section.in_memory() if isinstance(section, Window) else section


def flat(view: memoryview) -> memoryview:
    """As bytes in a row; a copy where they are not."""
    return (view if view.c_contiguous else memoryview(bytes(view))).cast("B")


def aligned(buffer: Any) -> memoryview:
    """A buffer as flat, read-only bytes that start on a multiple of 8: a copy where they do not."""
    view = flat(memoryview(buffer)).toreadonly()
    if len(view) and np.frombuffer(view, np.uint8).ctypes.data % 8:
        copy = np.empty(len(view), np.uint8)
        copy[:] = np.frombuffer(view, np.uint8)
        return memoryview(copy.data).cast("B").toreadonly()
    return view
