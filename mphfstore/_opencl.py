"""OpenCL devices through PyOpenCL: GPUs of any vendor, and the processor through PoCL."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import UnavailableError

GRAIN = 16  # bytes: sizes of buffers are multiples of it


class OpenCL:
    """One device, with a context and a queue of its own."""

    backend = "opencl"

    def __init__(self, device: Any) -> None:
        import pyopencl
        import pyopencl.array

        self._cl: Any = pyopencl
        self._array: Any = pyopencl.array
        self._device = device
        self.name = device.name.strip()
        self.platform = device.platform
        self.gpu = bool(device.type & (pyopencl.device_type.GPU | pyopencl.device_type.ACCELERATOR))
        self.units = int(device.max_compute_units)
        self.memory = int(device.global_mem_size)
        self.local_memory = int(device.local_mem_size)
        self.largest_buffer = int(device.max_mem_alloc_size)
        self._speed = self.units * int(device.max_clock_frequency)
        self._queue: Any = None
        self._lock = threading.RLock()

    def _start(self) -> Any:
        with self._lock:
            if self._queue is None:
                cl = self._cl
                context = cl.Context([self._device])
                self._queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
            return self._queue

    def compile(self, text: str) -> Any:
        try:
            program = self._cl.Program(self._start().context, text).build(options=["-cl-std=CL1.2"])
        except self._cl.Error as error:
            raise UnavailableError(f"backend 'opencl': {self.name} does not compile the kernels: {error}") from None
        return SimpleNamespace(**{kernel.function_name: kernel for kernel in program.all_kernels()})

    def empty(self, size: int) -> Any:
        return self._array.empty(self._start(), max(GRAIN, -(-size // GRAIN) * GRAIN), np.uint8)

    def zeros(self, size: int) -> Any:
        return self._array.zeros(self._start(), max(GRAIN, -(-size // GRAIN) * GRAIN), np.uint8)

    def pinned(self, size: int) -> NDArray[np.uint8]:
        flags, queue = self._cl.mem_flags, self._start()
        buffer = self._cl.Buffer(queue.context, flags.READ_WRITE | flags.ALLOC_HOST_PTR, size)
        memory: NDArray[np.uint8]
        memory, _ = self._cl.enqueue_map_buffer(queue, buffer, self._cl.map_flags.WRITE, 0, size, np.uint8)
        return memory  # its base is the mapping, which keeps the buffer

    def send(self, buffer: Any, array: NDArray[np.uint8]) -> Event:
        return Event(self._cl.enqueue_copy(self._start(), buffer.base_data, array, is_blocking=False))

    def upload(self, array: NDArray[Any]) -> Any:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        buffer = self.empty(flat.nbytes)
        if flat.nbytes:
            self._cl.enqueue_copy(self._queue, buffer.base_data, flat)
        return buffer

    def download(self, buffer: Any, out: NDArray[Any], begin: int = 0) -> None:
        if out.nbytes:
            self._cl.enqueue_copy(self._queue, out, buffer.base_data, src_offset=buffer.offset + begin)

    def launch(self, kernel: Any, groups: int, items: int, local_bytes: int, *arguments: Any) -> Event:
        given = [one.base_data if isinstance(one, self._array.Array) else one for one in arguments]
        if local_bytes:
            given.append(self._cl.LocalMemory(local_bytes))
        with self._lock:  # a kernel has one set of arguments, whoever uses it
            return Event(kernel(self._start(), (groups * items,), (items,), *given))

    def adopt(self, array: Any) -> Any:
        if not isinstance(array, self._array.Array):
            return None
        if array.context != self._start().context:
            raise ValueError("the array lies in another OpenCL context: make it with the queue of `to_device`'s object")
        if not array.flags.c_contiguous:
            raise ValueError(f"the array is not contiguous: shape {array.shape}, strides of {array.strides} bytes")
        if array.offset:
            array = array.copy(self._queue)
        array.finish()  # of whatever queue fills it
        return array

    def array(self, buffer: Any, dtype: np.dtype[Any], count: int) -> Any:
        return buffer[: count * dtype.itemsize].view(dtype)

    @property
    def queue(self) -> Any:
        """The pyopencl.CommandQueue that everything runs in."""
        return self._start()


class Event:
    def __init__(self, event: Any) -> None:
        self._event = event

    def wait(self) -> None:
        self._event.wait()

    def seconds(self) -> float:
        self._event.wait()
        return float(self._event.profile.end - self._event.profile.start) * 1e-9


def devices() -> list[OpenCL]:
    """All devices, GPUs first. Raises UnavailableError."""
    try:
        import pyopencl as cl
    except ImportError as error:
        raise UnavailableError(
            f"backend 'opencl' needs PyOpenCL ({error}): pip install pyopencl and, to run on the processor, "
            "pocl-binary-distribution"
        ) from None
    try:
        found = [OpenCL(device) for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:  # what the loader says without a single driver
        found = []
    if not found:
        raise UnavailableError(
            "backend 'opencl' finds no device: install the GPU's driver, or for the processor "
            "pip install pocl-binary-distribution (Debian: apt install pocl-opencl-icd)"
        )
    return sorted(found, key=lambda device: (not device.gpu, -device._speed))


def alike() -> list[OpenCL]:
    """The first device, and what GPUs of the same kind its platform has besides."""
    found = devices()
    first = found[0]
    return [one for one in found if one is first or (first.gpu and _kind(one) == _kind(first))]


def _kind(device: OpenCL) -> tuple[Any, str]:
    return device.platform, device.name
