"""Memory of large tensors that are freed is kept for the next ones.

glibc gives a large block back to the system as soon as it is freed. The next one of its size then costs a page fault
for every 4 KiB: half of the time in which calls on tensors of 100 MB are run, and five sixths of what it takes to add
and multiply residues, which verification does with blocks of a megabyte. Other C libraries are left as they are.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""Parameters of glibc's mallopt(3): free bytes at the heap's end from which they go back, and blocks of their own."""
_NEVER = (1 << 31) - 1


def keep_freed_memory() -> None:
    """From now on, in this process."""
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_MMAP_MAX, 0)
        libc.mallopt(_TRIM_THRESHOLD, _NEVER)


def give_back(above_bytes: int) -> None:
    """To the system, all that is free, where the process holds more memory than so much: when it has nothing to do."""
    libc = _glibc()
    if libc is not None and _resident_bytes() > above_bytes:
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None


def _resident_bytes() -> int:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
