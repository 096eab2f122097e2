"""Writes the C source of the cffi extension `mphfstore._native` from native.cdef.h: build_ffi.py OUTPUT."""

import sys
from pathlib import Path

import cffi

HERE = Path(__file__).resolve().parent


def main(output: str) -> None:
    ffi = cffi.FFI()
    ffi.cdef((HERE / "native.cdef.h").read_text())
    ffi.set_source("mphfstore._native", '#include "native.h"', py_limited_api=True)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main(sys.argv[1])
