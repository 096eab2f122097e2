"""Arrays in the memory of CUDA devices, whichever library has made them."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from . import _dlpack
from ._dlpack import DeviceArray, check_contiguous

LEGACY_STREAM = 1  # the usual one, in which everything here runs, as both interfaces number it


def exported(array: Any) -> DeviceArray | None:
    """What `__cuda_array_interface__` says, or DLPack's methods for memory of CUDA; None for what has neither.

    Of arrays with the former, somebody else has to wait for the stream that fills them: PyCUDA's GPUArray does not name
    any. Raises ValueError, TypeError, and what DLPack's producers raise."""
    face = getattr(array, "__cuda_array_interface__", None)
    if face is not None:
        return _described(array, face)
    device = getattr(array, "__dlpack_device__", None)
    if device is None or device()[0] not in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
        return None
    return _dlpack.read(array.__dlpack__(stream=LEGACY_STREAM))  # which the producer makes wait


def _described(array: Any, face: dict[str, Any]) -> DeviceArray:
    if face.get("mask") is not None:
        raise ValueError("the array has a mask")
    shape, dtype = tuple(face["shape"]), np.dtype(face["typestr"])
    check_contiguous(shape, face.get("strides"), dtype.itemsize)
    return DeviceArray(int(face["data"][0] or 0) if all(shape) else 0, shape, dtype, array)


def check_place(array: DeviceArray, number: int, context: int) -> None:
    """Raises ValueError unless the array, of one byte or more, lies on this device and in this context."""
    there, device = place_of(array.gpudata)
    if device != number:
        raise ValueError(f"the array lies on CUDA device {device}: here it has to be on device {number}")
    if there and there != context:
        raise ValueError(
            "the array lies in another CUDA context: here it has to be in the device's primary context, as other "
            "libraries' arrays are, and PyCUDA's after `import pycuda.autoprimaryctx`, not `pycuda.autoinit`"
        )


def place_of(address: int) -> tuple[int, int]:
    """Context – 0: none in particular, as memory of pools – and device of CUDA's memory. Raises ValueError."""
    driver = ctypes.CDLL("nvcuda" if os.name == "nt" else "libcuda.so.1")
    context, number, pointer = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64(address)
    driver.cuPointerGetAttribute(ctypes.byref(context), 1, pointer)  # CU_POINTER_ATTRIBUTE_CONTEXT
    if driver.cuPointerGetAttribute(ctypes.byref(number), 9, pointer):  # …_DEVICE_ORDINAL
        raise ValueError(f"no memory of a CUDA device is at {address:#x}")
    return context.value or 0, number.value
