"""Look-ups in one mapping over another: from native/layered.c where that is built, else – or with
MPHFSTORE_FASTPATH=0 – from `_layered_plain`, which is the same and slower."""

from __future__ import annotations

import os

__all__ = ["Keyset", "Layered"]

if os.environ.get("MPHFSTORE_FASTPATH") == "0":
    from ._layered_plain import Keyset, Layered
else:
    try:
        from ._layered import Keyset, Layered
    except ImportError:
        from ._layered_plain import Keyset, Layered
