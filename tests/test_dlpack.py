"""Reading DLPack capsules: numpy's own."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from mphfstore import _dlpack
from mphfstore._cuda_arrays import exported


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8", "c16", "b1"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 1, 3), (0,), (3, 0)])
def test_capsules_of_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, dtype)
    found = _dlpack.read(array.__dlpack__())
    assert (found.shape, found.dtype, found.device) == (shape, array.dtype, (_dlpack.CPU, 0))
    assert found.gpudata == (array.ctypes.data if array.size else 0)


def test_the_place_of_a_slice() -> None:
    array = np.arange(100, dtype="<u4")
    assert _dlpack.read(array[7:20].__dlpack__()).gpudata == array.ctypes.data + 28


CUBE = np.zeros((2, 3, 4))


@pytest.mark.parametrize("array", [CUBE[0, 0, ::2], CUBE[0, 0, ::-1], CUBE[0].T, CUBE[0, :, :2], CUBE[:, 0]])
def test_arrays_that_are_not_contiguous(array: Any) -> None:
    with pytest.raises(ValueError, match="not contiguous"):
        _dlpack.read(array.__dlpack__())
    with pytest.raises(ValueError, match="not contiguous"):
        exported(Exporting(array))


def test_strides_that_do_not_matter() -> None:
    for array in (np.zeros((5, 4))[:1], np.zeros((4, 5))[:, :1][:1], np.zeros((9, 0))[::3]):
        assert _dlpack.read(array.__dlpack__()).shape == array.shape
        assert exported(Exporting(array)).shape == array.shape  # type: ignore[union-attr]


def test_the_capsule_is_not_consumed_and_frees_its_array() -> None:
    class Array(np.ndarray[Any, Any]):
        pass

    array = np.arange(10).view(Array)
    gone = weakref.ref(array)
    found = _dlpack.read(array.__dlpack__())
    del array
    gc.collect()
    assert gone() is not None
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
    assert valid(found.owner, b"dltensor")
    del found
    gc.collect()
    assert gone() is None


def test_other_capsules_and_types() -> None:
    with pytest.raises(ValueError, match="PyCapsule"):
        _dlpack.read(np.zeros(1).__array_struct__)
    tensor = _dlpack.Tensor(ndim=0, code=4, bits=16, lanes=1)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    for tensor.code, tensor.bits, tensor.lanes in ((4, 16, 1), (1, 4, 1), (1, 8, 4)):
        with pytest.raises(TypeError, match="DLPack's type"):
            _dlpack.read(new(ctypes.addressof(tensor), b"dltensor", None))


def test_arrays_of_the_host_are_none_of_a_device() -> None:
    assert exported(np.zeros(3)) is None
    assert exported([1, 2]) is None


class Exporting:
    """`__cuda_array_interface__` of an array, wherever it lies."""

    def __init__(self, array: Any, **others: Any) -> None:
        self._array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "strides": array.strides, "version": 3, **others}


def test_cuda_array_interface() -> None:
    array = np.arange(12, dtype="<u4").reshape(3, 4)
    for others in ({}, {"strides": None}, {"stream": 2}, {"version": 2}, {"data": (array.ctypes.data, True)}):
        found = exported(Exporting(array, **others))
        assert found is not None
        assert (found.gpudata, found.shape, found.dtype) == (array.ctypes.data, (3, 4), array.dtype)
    with pytest.raises(ValueError, match="mask"):
        exported(Exporting(array, mask=array))
