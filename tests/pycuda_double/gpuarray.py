"""pycuda.gpuarray."""

from __future__ import annotations

from typing import Any

import numpy as np

from .driver import Context, mem_alloc, memcpy_dtoh, memcpy_htod


class GPUArray:
    def __init__(
        self, shape: Any, dtype: Any, allocator: Any = mem_alloc, base: Any = None, gpudata: Any = None,
        strides: Any = None, order: str = "C",
    ) -> None:  # fmt: skip
        Context.get_device()
        self.shape = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
        self.dtype, self.base = np.dtype(dtype), base
        self.strides = tuple(strides or np.empty(self.shape, [("", self.dtype)]).strides)
        self.size = int(np.prod(self.shape))
        self.nbytes = self.size * self.dtype.itemsize
        self.gpudata = allocator(self.nbytes) if gpudata is None and self.size else gpudata

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        address = int(self.gpudata) if self.gpudata is not None else 0
        return {
            "shape": self.shape, "strides": self.strides, "data": (address, False), "typestr": self.dtype.str,
            "stream": None, "version": 3,
        }  # fmt: skip

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> GPUArray:
        begin, end, step = part.indices(self.shape[0])
        length = (abs(end - begin) - 1) // abs(step) + 1
        return GPUArray(
            (length, *self.shape[1:]), self.dtype, base=self, gpudata=int(self.gpudata) + begin * self.strides[0],
            strides=(step * self.strides[0], *self.strides[1:]),
        )  # fmt: skip

    def view(self, dtype: Any) -> GPUArray:
        if self.shape[-1] * self.dtype.itemsize % np.dtype(dtype).itemsize:
            raise ValueError("new type not compatible with array")
        last = self.shape[-1] * self.dtype.itemsize // np.dtype(dtype).itemsize
        return GPUArray((*self.shape[:-1], last), dtype, base=self, gpudata=int(self.gpudata))

    def get(self) -> np.ndarray[Any, Any]:
        out = np.empty(self.shape, self.dtype)
        if self.size:
            memcpy_dtoh(out.view(np.uint8), self.gpudata)
        return out


def to_gpu(array: np.ndarray[Any, Any]) -> GPUArray:
    there = GPUArray(array.shape, array.dtype)
    if array.nbytes:
        memcpy_htod(there.gpudata, array)
    return there
