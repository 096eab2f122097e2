"""A stand-in for the parts of PyCUDA that mphfstore/_cuda.py uses, over PoCL: `installed()` puts it in sys.modules.

Signatures and rules are those of PyCUDA's source (2022.1 to 2026.1), strictly: a context has to be current in the
calling thread; addresses are ints; kernels take numpy scalars of exactly their parameters' sizes, and pointers;
shared memory beyond 48 KiB has to be asked for. What PyCUDA does to the process or only warns of is noted in FAULTS: a
thread that ends with a context pushed (PyCUDA aborts), memory freed where it cannot be (it leaks). Transfers from
page-locked memory and launches are done as late as CUDA may do them, when something waits.

It proves that the adapter calls what exists, with the right arguments, contexts and waits, and that what is above it
works over it. It cannot prove that PyCUDA or a GPU does what is assumed here, nor anything of nvcc, of warps that run
at the same time, of speed, or of several streams: the kernels run as OpenCL, one work-group after another."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

from . import compiler, driver, gpuarray
from .driver import FAULTS as FAULTS


@contextmanager
def installed() -> Iterator[types.ModuleType]:
    """`pycuda` and its modules are these until the end. Gives the driver."""
    package = types.ModuleType("pycuda")
    modules = {"pycuda": package}
    for module in (compiler, driver, gpuarray):
        name = module.__name__.rpartition(".")[2]
        modules[f"pycuda.{name}"] = module
        setattr(package, name, module)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield driver
    finally:
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old
