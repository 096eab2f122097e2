"""The look-ups of one key: from native/fastpath.c where that is built, else – or with MPHFSTORE_FASTPATH=0 – from
`_plain`, which is the same and slower."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

__all__ = ["Contains", "Handle", "Index", "Items", "Reader", "join"]

if TYPE_CHECKING:
    from ._fastpath import Contains, Handle, Index, Items, Reader, join
elif os.environ.get("MPHFSTORE_FASTPATH") == "0":
    from ._plain import Contains, Handle, Index, Items, Reader, join
else:
    try:
        from ._fastpath import Contains, Handle, Index, Items, Reader, join
    except ImportError:
        from ._plain import Contains, Handle, Index, Items, Reader, join
