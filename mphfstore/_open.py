"""Opening a file as whatever it is."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

from ._errors import FormatError
from ._filter import Filter
from ._format import Kind, parse
from ._handle import aligned
from ._mphf import MPHF
from ._store import Store, store_class

_CLASSES: dict[Kind, type[Filter] | type[MPHF]] = {Kind.MPHF: MPHF, Kind.FILTER: Filter}


def open(source: str | os.PathLike[str] | Any, mode: str = "mmap") -> Store | Filter | MPHF:
    """Opens a file by path, or from a buffer with its bytes, as the class its header names.

    Header and index are verified here, fingerprints and values by `verify()`. mode: "mmap", the only one so far:
    pages are read
    when they are touched, and shared between processes. A mapped file must not be truncated or written in place
    while it is
    open; replacing it by name, as every build does, is safe.

    Raises OSError, FormatError (empty, truncated, of another format), FormatVersionError (newer), ChecksumError
    (damaged)."""
    if mode != "mmap":
        raise ValueError(f"mode is 'mmap', not {mode!r}")
    path = None
    if isinstance(source, str | os.PathLike):
        path = Path(os.fsdecode(source))
        data = _map(path)
    else:
        data = aligned(source)
    file = parse(data)
    kind = file.header.kind
    return (store_class(file) if kind is Kind.STORE else _CLASSES[kind])(file, path)


def _map(path: Path) -> memoryview:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_size == 0:  # which mmap refuses with a message of its own
            raise FormatError("empty file")
        return memoryview(mmap.mmap(fd, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(fd)
