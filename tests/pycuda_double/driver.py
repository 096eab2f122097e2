"""pycuda.driver: contexts, memory, transfers, events."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

FAULTS: list[str] = []
DEVICES = [1]  # how many there are
SHARED_MEMORY = 100 << 10

lock = threading.RLock()
waiting: list[Callable[[], None]] = []  # the one stream's work
blocks: dict[int, np.ndarray[Any, Any]] = {}  # device memory, by address
owners: dict[int, Context] = {}


class Error(Exception): ...


class LogicError(Error): ...


class MemoryError(Error): ...


class LaunchError(Error): ...


# contexts


class _Stack:
    def __init__(self) -> None:
        self.pushed: list[Context] = []

    def __del__(self) -> None:
        if self.pushed:
            FAULTS.append("a thread has ended with a context on its stack")


class _Threads(threading.local):
    def __init__(self) -> None:
        self.stack = _Stack()


_threads = _Threads()


class Context:
    def __init__(self, number: int) -> None:
        self._number, self._thread = number, threading.get_ident()
        self.handle = 0x1000 + number  # primary contexts of a device are all the same
        self.valid = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and self.handle == other.handle

    def __hash__(self) -> int:
        return hash((self.handle, id(self)))

    def detach(self) -> None:
        self.valid = False

    def push(self) -> None:
        _threads.stack.pushed.append(self)

    @staticmethod
    def pop() -> None:
        if not _threads.stack.pushed:
            raise LogicError("context::pop failed: invalid device context - cannot pop non-current context")
        _threads.stack.pushed.pop()

    @staticmethod
    def get_current() -> Context | None:
        return _threads.stack.pushed[-1] if _threads.stack.pushed else None

    @staticmethod
    def get_device() -> Device:
        return Device(current()._number)

    @staticmethod
    def synchronize() -> None:
        current()
        finish()


def current() -> Context:
    context = Context.get_current()
    if context is None:
        raise LogicError("invalid device context - no currently active context?")
    return context


def finish() -> None:
    with lock:
        while waiting:
            waiting.pop(0)()


class Owned:
    """What is freed under its context: where that object is current, or in the thread that made it."""

    def __init__(self) -> None:
        self._context, self._valid = current(), True

    def free(self) -> None:
        if not self._valid:
            raise LogicError("free failed: invalid resource handle")
        self._valid = False
        if not self._context.valid:
            FAULTS.append(f"{type(self).__name__} in dead context was never freed")
        elif Context.get_current() is not self._context and threading.get_ident() != self._context._thread:
            FAULTS.append(f"{type(self).__name__} in out-of-thread context could not be cleaned up")
        else:
            self._release()

    def _release(self) -> None: ...

    def __del__(self) -> None:
        if getattr(self, "_valid", False):
            self.free()


# devices and memory


class device_attribute:
    MULTIPROCESSOR_COUNT, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = "multiprocessors", "shared"


class function_attribute:
    MAX_DYNAMIC_SHARED_SIZE_BYTES = "dynamic"


class Device:
    def __init__(self, number: int) -> None:
        if not 0 <= number < DEVICES[0]:
            raise LogicError("cuDeviceGet failed: invalid device ordinal")
        self._number = number

    @staticmethod
    def count() -> int:
        return DEVICES[0]

    def name(self) -> str:
        return f"stand-in {self._number}"

    def total_memory(self) -> int:
        return 1 << 32

    def get_attribute(self, attribute: str) -> int:
        return {"multiprocessors": 2, "shared": SHARED_MEMORY}[attribute]

    def retain_primary_context(self) -> Context:
        return Context(self._number)


def init(flags: int = 0) -> None: ...


class DeviceAllocation(Owned):
    def __init__(self, size: int) -> None:
        super().__init__()
        memory = np.full(size, 0xA5, np.uint8)
        self._address = memory.ctypes.data
        with lock:
            blocks[self._address], owners[self._address] = memory, self._context

    def __int__(self) -> int:
        return self._address

    __index__ = __int__

    def _release(self) -> None:
        with lock:
            finish()  # as cuMemFree does
            del blocks[self._address], owners[self._address]


class PagelockedHostAllocation(Owned):
    def __init__(self, size: int) -> None:
        super().__init__()
        self._memory = np.empty(size, np.uint8)
        self.__array_interface__ = self._memory.__array_interface__

    def _release(self) -> None:
        finish()


def mem_alloc(size: int) -> DeviceAllocation:
    if size < 1:
        raise LogicError("cuMemAlloc failed: invalid argument")
    return DeviceAllocation(size)


def pagelocked_empty(shape: int, dtype: Any, order: str = "C", mem_flags: int = 0) -> np.ndarray[Any, Any]:
    if np.dtype(dtype) != np.uint8:
        raise NotImplementedError
    return np.asarray(PagelockedHostAllocation(shape))  # whose base that is, as in PyCUDA


def memory_from(address: Any, size: int = 1) -> np.ndarray[Any, Any]:
    """Device memory from an address on."""
    if not isinstance(address, (int, DeviceAllocation)):  # Boost.Python takes no numpy integers
        raise TypeError(f"Python argument types did not match C++ signature: {type(address)}")
    with lock:
        for begin, memory in blocks.items():
            if begin <= int(address) < begin + len(memory):
                if int(address) + size > begin + len(memory):
                    break
                if owners[begin] != current():
                    break
                return memory[int(address) - begin :]
    raise LogicError(f"invalid argument: {size} bytes at {int(address):#x}")


def _bytes(array: Any) -> np.ndarray[Any, Any]:
    view = memoryview(array)
    if not view.contiguous:
        raise BufferError("the buffer is not contiguous")
    return np.frombuffer(view.cast("B"), np.uint8)


def memset_d8(dest: Any, data: int, size: int) -> None:
    memory = memory_from(dest, size)
    waiting.append(lambda: memory[:size].fill(data))


def memcpy_htod(dest: Any, src: Any) -> None:
    memory, given = memory_from(dest, len(_bytes(src))), _bytes(src)
    finish()
    memory[: len(given)] = given


def memcpy_htod_async(dest: Any, src: Any, stream: None = None) -> None:
    memory, given = memory_from(dest, len(_bytes(src))), _bytes(src)
    base = src
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, PagelockedHostAllocation):
        raise AssertionError("copied from memory that is not page-locked")

    def copy() -> None:
        memory[: len(given)] = given

    waiting.append(copy)


def memcpy_dtoh(dest: Any, src: Any) -> None:
    memory, given = memory_from(src, len(_bytes(dest))), _bytes(dest)
    if not given.flags.writeable:
        raise BufferError("the buffer is read-only")
    finish()
    given[:] = memory[: len(given)]


class Event(Owned):
    def __init__(self, flags: int = 0) -> None:
        super().__init__()
        self._done: bool | None = None

    def record(self, stream: None = None) -> Event:
        current()
        self._done, itself = False, weakref.ref(self)

        def reached() -> None:
            if (event := itself()) is not None:
                event._done = True

        waiting.append(reached)
        return self

    def synchronize(self) -> Event:
        finish()
        return self

    def time_since(self, start: Event) -> float:
        if not (self._done and start._done):
            raise LogicError("cuEventElapsedTime failed: device not ready")
        return 1.0


def place_of(address: int) -> tuple[int, int]:
    """As mphfstore._cuda_arrays has it."""
    with lock:
        for begin, memory in blocks.items():
            if begin <= address < begin + len(memory):
                return owners[begin].handle, owners[begin]._number
    raise ValueError("no memory of a CUDA device")
