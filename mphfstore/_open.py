"""Opening a file as whatever it is."""

from __future__ import annotations

import os
from typing import Any

from ._errors import naming
from ._filter import Filter
from ._format import Kind, parse
from ._mphf import MPHF
from ._source import Source
from ._store import Store

_CLASSES: dict[Kind, type[Store] | type[Filter] | type[MPHF]] = {
    Kind.MPHF: MPHF,
    Kind.FILTER: Filter,
    Kind.STORE: Store,
}


def open(source: str | os.PathLike[str] | Any, mode: str = "mmap", *, verify: bool = False) -> Store | Filter | MPHF:
    """Opens a file as the class its header names.

    source: a path; a binary file object, of which all counts, wherever its position is; a resource of a package
    (`importlib.resources`, in a zip file, too); or a buffer with the file's bytes, which is used where it lies and must
    not change. Objects that have no file descriptor are read into memory whatever the mode.

    mode: how a file is read.
    - "mmap": pages are read when they are touched, and shared between processes. The file must not be truncated or
      written in place while it is open – that kills the process –; replacing it by name, as every build does, is safe.
    - "pread": header, function and schema are read at once, of fingerprints, keys and values what a look-up needs is
      read when it needs it. For network file systems: whatever happens to the file, look-ups raise OSError or
      FormatError.
    - "ram": the whole file is read into memory at once.

    Header and index are verified here, fingerprints and values by `verify()`: with `verify=True` before this returns.

    Raises OSError, FormatError (empty, truncated, of another format), FormatVersionError (newer), ChecksumError
    (damaged)."""
    with naming(source):
        found = Source.of(source, mode)
        file = parse(found.data)
        opened: Store | Filter | MPHF = _CLASSES[file.header.kind]._class_for(file)(found, file)
        if verify:
            opened.verify()
        return opened
