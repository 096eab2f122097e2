"""NVIDIA GPUs through PyCUDA. Thin, for it has run on no GPU so far: the tests run it over a stand-in for PyCUDA
(tests/pycuda_double), and compile the kernels' text for CUDA.

Every call has the context to itself: pushed before, popped after. PyCUDA aborts the process when a thread ends that has
a context pushed; and what it has to free it only frees where that context is current or in the thread that made it,
and loses elsewhere, so that all that is made here has a finalizer that pushes the context, too."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from ._cuda_arrays import check_place, exported
from ._errors import UnavailableError

GRAIN = 16  # bytes: sizes of buffers are multiples of it
USUAL_SHARED_MEMORY = 48 << 10  # bytes; a kernel has to ask for more


class Cuda:
    """One device, by its primary context, which other libraries share. `with` makes that current in this thread."""

    backend, gpu = "cuda", True

    def __init__(self, driver: Any, number: int) -> None:
        self._driver, self._number, self._process = driver, number, os.getpid()
        self._device = driver.Device(number)
        self._context: Any = None
        attributes = driver.device_attribute
        self.name = self._device.name()
        self.units = int(self._device.get_attribute(attributes.MULTIPROCESSOR_COUNT))
        self.memory = int(self._device.total_memory())
        self.local_memory = int(self._device.get_attribute(attributes.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
        self.largest_buffer = self.memory

    def __enter__(self) -> None:
        if os.getpid() != self._process:
            raise UnavailableError("CUDA does not outlive a fork: start the process that uses it by 'spawn'")
        if self._context is None:
            self._context = self._device.retain_primary_context()
            finalize(self, _detach, self._context, self._process)
        self._context.push()

    def __exit__(self, *error: object) -> None:
        self._driver.Context.pop()

    def _freed_with(self, owner: Any, free: Callable[[], object]) -> None:
        finalize(owner, _free, self, free)

    def compile(self, text: str) -> Any:
        from pycuda.compiler import SourceModule

        plain = text.encode("ascii", "replace").decode()  # it goes to a file in the locale's encoding
        with self:
            try:
                module = SourceModule(plain, no_extern_c=True, options=["--std=c++14"])
            except OSError as error:  # PyCUDA's ExecError
                raise UnavailableError(f"backend 'cuda' needs nvcc of CUDA's toolkit in PATH ({error})") from None
            except self._driver.CompileError as error:
                raise UnavailableError(f"backend 'cuda': nvcc does not compile the kernels: {error}") from None
        return Kernels(self, module)

    def empty(self, size: int) -> Any:
        from pycuda.gpuarray import GPUArray

        with self:
            buffer = GPUArray((max(GRAIN, -(-size // GRAIN) * GRAIN),), np.uint8)
        self._freed_with(buffer, buffer.gpudata.free)
        return buffer

    def zeros(self, size: int) -> Any:
        buffer = self.empty(size)
        with self:  # GPUArray's own way is a kernel that nvcc has to compile
            self._driver.memset_d8(int(buffer.gpudata), 0, buffer.nbytes)
        return buffer

    def pinned(self, size: int) -> NDArray[np.uint8]:
        with self:
            memory: Any = self._driver.pagelocked_empty(size, np.uint8)
        self._freed_with(memory, memory.base.free)
        return memory  # type: ignore[no-any-return]

    def send(self, buffer: Any, array: NDArray[np.uint8]) -> Event:
        return self._timed(partial(self._driver.memcpy_htod_async, int(buffer.gpudata), array))

    def upload(self, array: NDArray[Any]) -> Any:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        buffer = self.empty(flat.nbytes)
        if flat.nbytes:
            with self:
                self._driver.memcpy_htod(int(buffer.gpudata), flat)
        return buffer

    def download(self, buffer: Any, out: NDArray[Any], begin: int = 0) -> None:
        if out.nbytes:
            with self:
                self._driver.memcpy_dtoh(out.reshape(-1).view(np.uint8), int(buffer.gpudata) + begin)

    def launch(self, kernel: Any, groups: int, items: int, local_bytes: int, *arguments: Any) -> Event:
        given = [one if isinstance(one, np.number) else np.uintp(int(one.gpudata)) for one in arguments]
        call = partial(kernel, *given, block=(items, 1, 1), grid=(groups, 1), shared=local_bytes)
        with self:
            if local_bytes > USUAL_SHARED_MEMORY:
                kernel.set_attribute(self._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, local_bytes)
            return self._timed(call)

    def _timed(self, call: Callable[[], object]) -> Event:
        with self:
            begin, end = self._driver.Event(), self._driver.Event()
            begin.record()
            call()
            end.record()
        return Event(self, begin, end)

    def adopt(self, array: Any) -> Any:
        """PyCUDA's GPUArray and whatever else has `__cuda_array_interface__`, or DLPack's methods and CUDA memory."""
        found = exported(array)
        if found is not None and found.gpudata:
            with self:
                check_place(found, self._number, self._context.handle)
                self._driver.Context.synchronize()  # whatever stream fills it
        return found

    def array(self, buffer: Any, dtype: np.dtype[Any], count: int) -> Any:
        with self:
            self._driver.Context.synchronize()  # a GPUArray says that no stream has to be waited for
            return buffer[: count * dtype.itemsize].view(dtype)


class Kernels:
    """Kernels of a module, each made once."""

    def __init__(self, device: Cuda, module: Any) -> None:
        self._device, self._held = device, {"": module}  # and kernels, which hold it
        device._freed_with(self, self._held.clear)

    def __getattr__(self, name: str) -> Any:
        if name not in self._held:
            with self._device:
                self._held[name] = self._held[""].get_function(name)
        return self._held[name]


class Event:
    def __init__(self, device: Cuda, begin: Any, end: Any) -> None:
        self._device, self._events = device, [begin, end]
        device._freed_with(self, self._events.clear)

    def wait(self) -> None:
        with self._device:
            self._events[1].synchronize()

    def seconds(self) -> float:
        with self._device:
            begin, end = self._events
            return float(end.synchronize().time_since(begin)) * 1e-3


def _free(device: Cuda, free: Callable[[], object]) -> None:
    try:
        with device:
            free()
    except UnavailableError:  # a forked child has no business with it, and PyCUDA's destructors would end the process
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(free))


def _detach(context: Any, process: int) -> None:
    if os.getpid() == process:  # PyCUDA's destructor would release it as a context of the other kind
        context.detach()


def devices() -> list[Cuda]:
    """All devices. Raises UnavailableError."""
    try:
        import pycuda.driver as driver
    except ImportError as error:
        raise UnavailableError(
            f"backend 'cuda' needs PyCUDA ({error}): pip install pycuda, with NVIDIA's driver and toolkit"
        ) from None
    try:
        driver.init()
        found = [Cuda(driver, number) for number in range(driver.Device.count())]
    except driver.Error as error:
        raise UnavailableError(f"backend 'cuda' finds no device: {error}; install NVIDIA's driver") from None
    if not found:
        raise UnavailableError("backend 'cuda' finds no device")
    return found
