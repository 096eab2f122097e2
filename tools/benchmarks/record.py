"""What a record says of the machine and the programs, and how it is printed."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any


def processor() -> str:
    """The processor's name, for the reader of the numbers."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def instruction_set() -> str | None:
    """The one that our look-ups and searches use; None in an interpreter without mphfstore."""
    try:
        from mphfstore._build import isa
    except ImportError:
        return None
    return isa().decode()


def environment() -> dict[str, Any]:
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "isa": instruction_set(),
        "python": platform.python_version(),
    }


def resident() -> int:
    """Bytes of the process in memory, less those that its allocator keeps for later where it lets go of them; 0 where
    the system does not say."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def version(distribution: str) -> str | None:
    """Of an installed distribution."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def emit(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


def say(message: str) -> None:
    """Progress, on standard error."""
    print(message, file=sys.stderr, flush=True)
