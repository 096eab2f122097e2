"""pycuda.compiler, and the kernels that come of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyopencl as cl

from .driver import SHARED_MEMORY, DeviceAllocation, LogicError, Owned, blocks, current, lock, memory_from, waiting
from .gpuarray import GPUArray

_opencl: list[Any] = []  # a context, a queue, and programs by their text


def _program(text: str) -> Any:
    if not _opencl:
        context = cl.Context([next(one for one in _devices() if not one.type & cl.device_type.GPU)])
        _opencl.extend([context, cl.CommandQueue(context), {}])
    context, _, programs = _opencl
    if text not in programs:
        programs[text] = cl.Program(context, text).build(["-cl-std=CL1.2", "-cl-kernel-arg-info"])
    return programs[text]


def _devices() -> Iterator[Any]:
    for platform in cl.get_platforms():
        yield from platform.get_devices()


class SourceModule(Owned):
    def __init__(
        self, source: str, nvcc: str = "nvcc", options: list[str] | None = None, keep: bool = False,
        no_extern_c: bool = False, arch: Any = None, code: Any = None, cache_dir: Any = None, include_dirs: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if "#include" in source:
            raise AssertionError("PyCUDA runs the preprocessor whenever it looks in its cache for such a text")
        source.encode("ascii")  # it is written in the locale's encoding
        assert no_extern_c and options is not None
        with lock:
            self._program = _program(source)

    def get_function(self, name: str) -> Function:
        current()
        return Function(self, cl.Kernel(self._program, name))


class Function:
    def __init__(self, module: SourceModule, kernel: Any) -> None:
        self._module, self._kernel, self._most_shared = module, kernel, 48 << 10

    def set_attribute(self, attribute: str, value: int) -> None:
        current()
        if attribute != "dynamic" or not 0 <= value <= SHARED_MEMORY:
            raise LogicError("cuFuncSetAttribute failed: invalid argument")
        self._most_shared = value

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        grid, block = kwargs.pop("grid", (1, 1)), kwargs.pop("block", None)
        shared, stream = kwargs.pop("shared", 0), kwargs.pop("stream", None)
        if kwargs or stream is not None or block is None:
            raise ValueError(f"extra keyword arguments: {kwargs}")
        if not all(type(one) is int and one > 0 for one in (*grid, *block)) or type(shared) is not int:
            raise TypeError("No registered converter was able to produce a C++ rvalue")
        if shared > self._most_shared:
            raise LogicError("cuLaunchKernel failed: invalid argument")
        if self._module._context != current():
            raise LogicError("cuLaunchKernel failed: invalid resource handle")
        given = self._given(args)
        if len(given) + bool(shared) != self._kernel.num_args:
            raise AssertionError(
                f"{self._kernel.function_name}: {len(args)} arguments, {shared} bytes of shared memory"
            )

        def run() -> None:
            _, queue, _ = _opencl
            buffers = {}
            for number, one in enumerate(given):
                if isinstance(one, int):  # one buffer per address, for two would overlap
                    memory = blocks[next(at for at in blocks if at <= one < at + len(blocks[at]))]
                    part = memory[one - memory.ctypes.data :]
                    flags = cl.mem_flags.USE_HOST_PTR
                    one = buffers.setdefault(one, cl.Buffer(queue.context, flags, hostbuf=part))
                self._kernel.set_arg(number, one)
            if shared:
                self._kernel.set_arg(len(given), cl.LocalMemory(shared))
            cl.enqueue_nd_range_kernel(queue, self._kernel, (grid[0] * block[0],), (block[0],))
            queue.finish()

        waiting.append(run)

    def _given(self, args: tuple[Any, ...]) -> list[Any]:
        """Arguments as numbers and, as ints, addresses."""
        given = []
        for number, one in enumerate(args):
            there = self._kernel.get_arg_info(number, cl.kernel_arg_info.ADDRESS_QUALIFIER)
            kind = self._kernel.get_arg_info(number, cl.kernel_arg_info.TYPE_NAME)
            if isinstance(one, (DeviceAllocation, GPUArray)):
                one = np.uintp(int(getattr(one, "gpudata", one)))
            elif not isinstance(one, np.number):
                raise TypeError(f"invalid type on parameter #{number} (0-based)")
            if there == cl.kernel_arg_address_qualifier.GLOBAL:
                assert one.dtype.itemsize == 8, f"parameter #{number} is {kind}, not {one!r}"
                memory_from(int(one))
                given.append(int(one))
            else:
                size = {"u8": 1, "uint": 4, "ulong": 8, "u32": 4, "u64": 8}[kind]
                assert one.dtype.itemsize == size, f"parameter #{number} is {kind}, not {one!r}"
                given.append(one)
        return given
