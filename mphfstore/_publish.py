"""Atomic publication: a file appears whole under its name or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


class Publication:
    """A temporary file beside the target. A clean exit fsyncs it and renames it over the target; an exception
    removes it.

    The temporary is locked while its writer lives, so that the next build for the same target can tell what a
    killed one left
    behind, and remove it. `ready`, if set, is called with the whole file's descriptor before the rename, which an
    exception prevents. Raises OSError where the directory is missing, not writable or full."""

    ready: Callable[[int], None] | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(os.path.abspath(os.fsdecode(path)))  # where it was named, wherever the process goes
        if self._path.is_dir():
            raise IsADirectoryError(f"{self._path} is a directory")
        self._prefix = "." + os.fsdecode(os.fsencode(self._path.name)[:200])  # names end at 255 bytes

    def __enter__(self) -> Publication:
        # Opened first: a directory that cannot be synced refuses before anything is replaced.
        self._directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._remove_debris()
            self._create()
        except BaseException:
            os.close(self._directory)
            raise
        return self

    def _create(self) -> None:
        while True:
            self._temporary = self._path.with_name(f"{self._prefix}.{secrets.token_hex(8)}.mphtmp")
            # 0o666 less the umask, as any program would create it; mkstemp's 0o600 would surprise the readers
            self._fd = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            try:
                if self._lock() and os.fstat(self._fd).st_nlink:
                    return
            except BaseException:
                self._discard()
                raise
            self._discard()  # another build took it for debris before it was locked

    def _lock(self) -> bool:
        """False if another build holds the lock: to remove the file."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: debris stays
            pass
        return True

    @property
    def temporary(self) -> Path:
        """The file under its temporary name, for a library that writes by name."""
        return self._temporary

    def write_at(self, data: memoryview, offset: int) -> None:
        while len(data):
            written = os.pwrite(self._fd, data[: 1 << 30], offset)
            data, offset = data[written:], offset + written

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self._discard()
                return
            try:
                os.fsync(self._fd)
                if self.ready is not None:
                    self.ready(self._fd)
                os.replace(self._temporary, self._path)
            except BaseException:
                self._discard()
                raise
            os.close(self._fd)
            os.fsync(self._directory)
        finally:
            os.close(self._directory)

    def _discard(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)
        os.close(self._fd)

    def _remove_debris(self) -> None:
        for left in self._path.parent.glob(f"{glob.escape(self._prefix)}.{'[0-9a-f]' * 16}.mphtmp"):
            with contextlib.suppress(OSError):
                fd = os.open(left, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its writer lives
                    os.unlink(left)
                finally:
                    os.close(fd)


class Memory:
    """A file in memory, for `Writer`."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write_at(self, data: memoryview, offset: int) -> None:
        if len(self.data) < offset + len(data):
            self.data.extend(bytes(offset + len(data) - len(self.data)))
        self.data[offset : offset + len(data)] = data
