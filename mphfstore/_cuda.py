"""NVIDIA GPUs through PyCUDA. Thin, because it is the one part that no test runs: there was no GPU where this was
written. The kernels' text is compiled for CUDA by the tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import UnavailableError

GRAIN = 16  # bytes: sizes of buffers are multiples of it
USUAL_SHARED_MEMORY = 48 << 10  # bytes; a kernel has to ask for more


class Cuda:
    """One device, by its primary context, which other libraries share."""

    backend, gpu = "cuda", True

    def __init__(self, driver: Any, number: int) -> None:
        self._driver = driver
        self._device = driver.Device(number)
        self._context: Any = None
        attributes = driver.device_attribute
        self.name = self._device.name()
        self.units = int(self._device.get_attribute(attributes.MULTIPROCESSOR_COUNT))
        self.memory = int(self._device.total_memory())
        self.local_memory = int(self._device.get_attribute(attributes.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
        self.largest_buffer = self.memory

    def _start(self) -> Any:
        """Makes the context current in this thread."""
        if self._context is None:
            self._context = self._device.retain_primary_context()
        if self._driver.Context.get_current() != self._context:
            self._context.push()
        from pycuda import gpuarray

        return gpuarray

    def compile(self, text: str) -> Any:
        self._start()
        from pycuda.compiler import SourceModule

        return Kernels(SourceModule(text, no_extern_c=True, options=["--std=c++14"]))

    def empty(self, size: int) -> Any:
        return self._start().empty(max(GRAIN, -(-size // GRAIN) * GRAIN), np.uint8)

    def zeros(self, size: int) -> Any:
        return self._start().zeros(max(GRAIN, -(-size // GRAIN) * GRAIN), np.uint8)

    def pinned(self, size: int) -> NDArray[np.uint8]:
        self._start()
        memory: NDArray[np.uint8] = self._driver.pagelocked_empty(size, np.uint8)
        return memory

    def send(self, buffer: Any, array: NDArray[np.uint8]) -> Event:
        return self._timed(partial(self._driver.memcpy_htod_async, buffer.gpudata, array))

    def upload(self, array: NDArray[Any]) -> Any:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        buffer = self.empty(flat.nbytes)
        if flat.nbytes:
            self._driver.memcpy_htod(buffer.gpudata, flat)
        return buffer

    def download(self, buffer: Any, out: NDArray[Any], begin: int = 0) -> None:
        self._start()
        if out.nbytes:
            self._driver.memcpy_dtoh(out, int(buffer.gpudata) + begin)

    def launch(self, kernel: Any, groups: int, items: int, local_bytes: int, *arguments: Any) -> Event:
        given = [getattr(one, "gpudata", one) for one in arguments]
        if local_bytes > USUAL_SHARED_MEMORY:
            kernel.set_attribute(self._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, local_bytes)
        return self._timed(partial(kernel, *given, block=(items, 1, 1), grid=(groups, 1), shared=local_bytes))

    def _timed(self, call: Callable[[], object]) -> Event:
        self._start()
        begin, end = self._driver.Event(), self._driver.Event()
        begin.record()
        call()
        end.record()
        return Event(begin, end)

    def adopt(self, array: Any) -> Any:
        """Also anything else with `__cuda_array_interface__`."""
        face = getattr(array, "__cuda_array_interface__", None)
        if face is None:
            return None
        gpuarray = self._start()
        self._driver.Context.synchronize()  # whatever stream fills it
        return array if isinstance(array, gpuarray.GPUArray) else _Adopted(array, face)

    def array(self, buffer: Any, dtype: np.dtype[Any], count: int) -> Any:
        return buffer[: count * dtype.itemsize].view(dtype)


class _Adopted:
    def __init__(self, array: Any, face: dict[str, Any]) -> None:
        if face.get("strides") is not None:
            raise ValueError("the array is not contiguous")
        self.owner, self.gpudata = array, np.uint64(face["data"][0])
        self.dtype, self.shape = np.dtype(face["typestr"]), face["shape"]


class Kernels:
    """Kernels of a module."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return self._module.get_function(name)


class Event:
    def __init__(self, begin: Any, end: Any) -> None:
        self._begin, self._end = begin, end

    def wait(self) -> None:
        self._end.synchronize()

    def seconds(self) -> float:
        self._end.synchronize()
        return float(self._end.time_since(self._begin)) * 1e-3


def devices() -> list[Cuda]:
    """All devices. Raises UnavailableError."""
    try:
        import pycuda.driver as driver
    except ImportError as error:
        raise UnavailableError(
            f"backend 'cuda' needs PyCUDA ({error}): pip install mphfstore[cuda], with NVIDIA's driver and toolkit"
        ) from None
    try:
        driver.init()
        found = [Cuda(driver, number) for number in range(driver.Device.count())]
    except driver.Error as error:
        raise UnavailableError(f"backend 'cuda' finds no device: {error}; install NVIDIA's driver") from None
    if not found:
        raise UnavailableError("backend 'cuda' finds no device")
    return found
