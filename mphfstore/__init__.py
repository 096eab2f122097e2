"""Static key-value stores and filters on minimal perfect hash functions.

`build` writes a store, `open` opens any file of this package: a `Store`, `Filter` or `MPHF`. An
`Overlay` is a store that changes."""

from __future__ import annotations

from ._builder import Builder, build
from ._errors import (
    BuildError,
    ChecksumError,
    DuplicateKeyError,
    Error,
    FormatError,
    FormatVersionError,
    StaleError,
    UnavailableError,
)
from ._filter import Filter
from ._mphf import MPHF
from ._open import open
from ._options import PRESETS
from ._overlay import Overlay
from ._overlay_snapshot import Snapshot
from ._scan import Scanner, scan, scan_file
from ._scan_hits import Hits
from ._store import ExactStore, Store

__all__ = [
    "MPHF",
    "PRESETS",
    "BuildError",
    "Builder",
    "ChecksumError",
    "DuplicateKeyError",
    "Error",
    "ExactStore",
    "Filter",
    "FormatError",
    "FormatVersionError",
    "Hits",
    "Overlay",
    "Scanner",
    "Snapshot",
    "StaleError",
    "Store",
    "UnavailableError",
    "build",
    "open",
    "scan",
    "scan_file",
]
