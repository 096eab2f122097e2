# The cffi extension; native/native.cdef.h says what is in it.
from typing import Any

ffi: Any
lib: Any
