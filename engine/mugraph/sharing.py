"""Several runs on one machine, side by side: `mugraph bench files --jobs`.

What is timed has the device alone; what only runs there (tests against float64, captures) goes side by side, and waits
meanwhile. The runs take turns by a lock of the operating system, which ends with the process that holds it. A run that
is alone on the machine takes no turns.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import IO

VARIABLE = "MUGRAPH_SIDE_BY_SIDE"
"""NUMBER:FOLDER in the environment of the runs: how many there are, and where their locks are."""


def environment(count: int, folder: Path) -> Mapping[str, str]:
    """What each of `count` runs has in its environment. folder: is there as long as they are"""
    if count < 2:
        return {}
    threads = str(max(1, (os.cpu_count() or 2) // count))
    shared = {"OMP_NUM_THREADS": threads, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    return {**{name: os.environ.get(name, value) for name, value in shared.items()}, VARIABLE: f"{count}:{folder}"}


def beside() -> int:
    """How many runs share the machine, this one counted."""
    number = os.environ.get(VARIABLE, "").partition(":")[0]
    return max(1, int(number)) if number.isdecimal() else 1


@contextlib.contextmanager
def turn(*, alone: bool) -> Generator[None]:
    """Wait until this process may launch on the device. alone: nobody else launches there inside."""
    folder = os.environ.get(VARIABLE, "").partition(":")[2]
    if not folder or sys.platform == "win32":
        yield
        return
    import fcntl

    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    with _opened(folder, "device") as device:
        # Who waits to be alone holds the gate, so that those who share cannot follow one another for ever.
        with _opened(folder, "gate") as gate:
            fcntl.flock(gate, how)
            fcntl.flock(device, how)
        yield  # closing the file releases it


def _opened(folder: str, name: str) -> IO[bytes]:
    """A file of this caller alone: locks of one open file do not exclude each other."""
    return open(Path(folder, name), "ab")
