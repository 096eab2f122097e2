"""What a DLPack capsule says of its array (dlpack.h: DLManagedTensor). The capsule is read and not consumed: it keeps
its name, and with that frees the array when it goes itself."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

CPU, CUDA, CUDA_MANAGED = 1, 2, 13  # DLDeviceType
NAME = b"dltensor"
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLDataTypeCode; no 4: bfloat is none of numpy's


class Tensor(ctypes.Structure):
    """DLTensor, with which a DLManagedTensor begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # of elements; none: contiguous
        ("byte_offset", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class DeviceArray:
    """A contiguous array in some device's memory."""

    gpudata: int  # address; 0 of no bytes
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    owner: Any  # keeps the memory
    device: tuple[int, int] | None = None  # type and number, of DLPack


def read(capsule: Any) -> DeviceArray:
    """Raises TypeError for element types that numpy does not have, ValueError for arrays that are not contiguous."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = Tensor.from_address(pointer(capsule, NAME))
    if tensor.code not in _KINDS or tensor.lanes != 1 or tensor.bits % 8:
        raise TypeError(f"no keys: DLPack's type {tensor.code} of {tensor.bits} bits, {tensor.lanes} lanes")
    dtype = np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(dtype.itemsize * one for one in tensor.strides[: tensor.ndim]) if tensor.strides else None
    check_contiguous(shape, strides, dtype.itemsize)
    address = (tensor.data or 0) + tensor.byte_offset if 0 not in shape else 0
    return DeviceArray(address, shape, dtype, capsule, (tensor.device_type, tensor.device_id))


def check_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> None:
    """Raises ValueError. strides: of bytes, of an array in C's order if there are none."""
    if strides is None or 0 in shape:
        return
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            raise ValueError(f"the array is not contiguous: shape {shape}, strides of {strides} bytes")
        expected *= length
