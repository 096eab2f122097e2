"""Devices that run the kernels of cuda/: one small interface, two adapters (`_opencl`, `_cuda`), and which devices this
machine has.

A program is one text, put together from native/'s headers and cuda/'s kernels: concatenated, not included, so that
there is nothing for a compiler's cache to look up again. What an adapter has to offer is `Device`; everything above it
is the same for all of them, and tests run it on the processor through PoCL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._errors import UnavailableError
from ._native import ffi, lib

BACKENDS = ("auto", "native", "cuda", "opencl")
AUTO_KEYS = 1 << 20  # "auto" does not look for a GPU for fewer keys: they are built before one has started

# In an order in which everything is defined before it is used.
TEXTS = (
    "device.h", "xxh3.h", "keys.h", "bits.h", "tree.h", "rice.h", "chain.h", "elias_fano.h", "directory.h",
    "chain_directory.h", "function.h", "methods/brute.h", "methods/rotation.h", "find.h", "lookup.h", "grouping.h",
    "chained_node.h", "chained.h", "levels.h", "scan_filter.h", "occurrences.h",
)  # fmt: skip
_CONSTANTS = ("METHOD_BRUTE", "METHOD_ROTATION", "METHOD_CHAINED", "ABSENT", "STATUS_CORRUPT")
# Unsigned, of kernels, which the host has to reckon with.
FOUND = 32  # solutions of a node of chained seeds that are taken at a time
CONTROL_WORDS, WORK_WORDS = 32, 8  # of 32 and of 64 bits, in a work-group's local memory
NUMBERS_AT_ONCE = 8  # that an item tries of a node of brute and rotation
UNFOUND = 0xFFFF_FFFF  # in place of a number


class Device(Protocol):
    """What an adapter offers. Work is done in the order in which it is asked for; `download` waits for it.

    Buffers are the adapter's own array type, of bytes; their memory is a multiple of 16 bytes, never none."""

    backend: str
    name: str
    gpu: bool
    units: int  # multiprocessors, or whatever runs work-groups
    memory: int  # bytes
    local_memory: int  # bytes that a work-group may have
    largest_buffer: int  # bytes

    def compile(self, text: str) -> Any:
        """The program's kernels, by attribute."""

    def empty(self, size: int) -> Any:
        """A buffer of `size` bytes."""

    def zeros(self, size: int) -> Any:
        """The same, all zero."""

    def pinned(self, size: int) -> NDArray[np.uint8]:
        """Memory here that the device copies from while this thread goes on."""

    def send(self, buffer: Any, array: NDArray[np.uint8]) -> Event:
        """Begins to copy an array in `pinned` memory to a buffer."""

    def upload(self, array: NDArray[Any]) -> Any:
        """A buffer with an array's bytes."""

    def download(self, buffer: Any, out: NDArray[Any], begin: int = 0) -> None:
        """Copies `out.nbytes` bytes of a buffer, from byte `begin` on."""

    def launch(self, kernel: Any, groups: int, items: int, local_bytes: int, *arguments: Any) -> Event:
        """Runs `groups` groups of `items` work-items. Arguments: buffers, and numpy scalars of the kernel's types.
        local_bytes: their local memory; 0 for kernels that have none."""

    def adopt(self, array: Any) -> Any:
        """An array that lies on the device already, as a buffer; None for anything else."""

    def array(self, buffer: Any, dtype: np.dtype[Any], count: int) -> Any:
        """A buffer as the adapter's usual array type, without a copy."""


class Event(Protocol):
    """Something that a device was asked to do."""

    def wait(self) -> None:
        """Until it is done."""

    def seconds(self) -> float:
        """Waits. How long it took."""


def kernel_text() -> str:
    """The whole program, for either language."""
    constants = ", ".join(f"{name} = {getattr(lib, name)}" for name in _CONSTANTS)
    sizes = {"FOUND": FOUND, "CONTROL_WORDS": CONTROL_WORDS, "WORK_WORDS": WORK_WORDS, "UNFOUND": UNFOUND}
    sizes["NUMBERS_AT_ONCE"] = NUMBERS_AT_ONCE
    defined = [f"#define {name} {value}u" for name, value in sizes.items()]
    parts = [_text(name) for name in TEXTS]
    return "\n".join([parts[0], f"enum {{ {constants} }};", *defined, *parts[1:]])


def _text(name: str) -> str:
    """A header's text without its #include lines."""
    package = Path(__file__).parent
    installed, source = package / "kernels", package.parent  # an editable installation reads the sources themselves
    folders = [installed] if installed.is_dir() else [source / "cuda", source / "native"]
    path = next(folder / name for folder in folders if (folder / name).is_file())
    return "".join(line for line in path.read_text().splitlines(True) if not line.startswith("#include"))


class Session:
    """A device with the program compiled for it."""

    def __init__(self, device: Device) -> None:
        self.device = device

    @cached_property
    def kernels(self) -> Any:
        """By attribute. Raises UnavailableError if they do not compile."""
        return self.device.compile(kernel_text())

    def over(self, name: str, count: int, *arguments: Any) -> Event:
        """Runs a kernel whose items share `count` pieces of work among them."""
        items = 64
        groups = max(1, min(-(-count // items), 64 * self.device.units))
        return self.device.launch(getattr(self.kernels, name), groups, items, 0, *arguments)


def sessions(backend: str) -> list[Session]:
    """The best device of a backend, "cuda" or "opencl", and others of its kind. Raises UnavailableError if there is
    none, saying what to install."""
    return _sessions(backend, os.getpid())


@cache
def _sessions(backend: str, process: int) -> list[Session]:  # a forked child must not use its parent's
    return [Session(device) for device in _found(backend)]


def _found(backend: str) -> Sequence[Device]:
    if backend == "opencl":
        from . import _opencl

        return _opencl.alike()
    if backend == "cuda":
        from . import _cuda

        return _cuda.devices()
    raise ValueError(f"backend is one of {', '.join(BACKENDS)}, not {backend!r}")


def chosen(backend: str, keys: int | None = None) -> list[Session]:
    """The sessions to build `keys` keys with, or for other work; none: native code. "auto" takes GPUs if there are any,
    and never fails.

    Raises UnavailableError for a backend that was asked for and is not at hand, ValueError for one that is none."""
    if backend not in BACKENDS:
        raise ValueError(f"backend is one of {', '.join(BACKENDS)}, not {backend!r}")
    if backend in ("cuda", "opencl"):
        return sessions(backend)
    if backend == "auto" and (keys is None or keys >= AUTO_KEYS):
        for name in ("cuda", "opencl"):
            try:
                found = sessions(name)
            except Exception:  # whatever a driver meets
                continue
            if found[0].device.gpu:
                return found
    return []


def devices() -> list[dict[str, Any]]:
    """What `mphfstore info --devices` lists: every device of every backend, or why a backend has none."""
    from . import _cuda, _opencl

    listings: dict[str, Callable[[], Sequence[Device]]] = {"cuda": _cuda.devices, "opencl": _opencl.devices}
    found: list[dict[str, Any]] = []
    for backend, listing in listings.items():
        try:
            found += [
                {"backend": backend, "name": one.name, "gpu": one.gpu, "units": one.units, "memory": one.memory}
                for one in listing()
            ]
        except UnavailableError as error:
            found.append({"backend": backend, "unavailable": str(error)})
    return found


def table_buffers(device: Device, tables: Any) -> list[Any]:
    """nodes, links, fields and multiplier of native tables, on the device."""
    spans = ffi.new("table_bytes *")
    lib.mphf_tables_bytes(tables, spans)

    def there(name: str) -> Any:
        length = getattr(spans, f"{name}_length")
        return device.upload(np.frombuffer(ffi.buffer(getattr(spans, name), length) if length else b"", np.uint8))

    return [there(name) for name in ("nodes", "links", "fields", "multiplier")]
