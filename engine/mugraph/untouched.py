"""Memory of which pages come when they are touched: as long as tensors of gigabytes, of which a few places are used."""

from __future__ import annotations

import mmap
import sys

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
"""The system need not promise that there is as much. (The module names it from Python 3.13 on.)"""


def untouched(size_bytes: int) -> mmap.mmap:
    """So many zeros. size_bytes: more than 0"""
    if sys.platform == "win32":
        return mmap.mmap(-1, size_bytes)
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
