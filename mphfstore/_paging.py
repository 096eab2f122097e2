"""Keeping a file's pages at hand: read ahead, and locked in memory."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
from collections.abc import Callable
from typing import Any

import numpy as np

from ._source import CHUNK, Window


def prefetch(data: memoryview | Window, wait: bool) -> None:
    """Has the system read the bytes ahead; with `wait`, reads them."""
    if isinstance(data, Window):
        data.advise(0, len(data))
        if wait:
            for begin in range(0, len(data), CHUNK):
                data[begin : begin + CHUNK]
        return
    mapping = data.obj
    if isinstance(mapping, mmap.mmap) and hasattr(mapping, "madvise"):
        mapping.madvise(mmap.MADV_WILLNEED)
    if wait:
        np.frombuffer(data, np.uint8)[:: mmap.PAGESIZE].max(initial=0)


def lock(data: memoryview) -> None:
    """Reads the bytes into memory and keeps them there until they are unmapped. Raises OSError where the system
    refuses."""
    call: Callable[..., Any] = ctypes.CDLL(None, use_errno=True).mlock
    address = np.frombuffer(data, np.uint8).ctypes.data
    if call(ctypes.c_void_p(address), ctypes.c_size_t(len(data))) == 0:
        return
    number = ctypes.get_errno()
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    reason = os.strerror(number)
    if number in (errno.ENOMEM, errno.EPERM, errno.EAGAIN) and limit != resource.RLIM_INFINITY:
        reason = f"more than this process may lock: {limit} bytes in all (ulimit -l); {reason}"
    raise OSError(number, f"cannot lock {len(data)} bytes in memory: {reason}")
