"""Several runs on one machine, side by side: `mugraph bench files --jobs`.

What is timed has the device alone; what only runs there (tests against float64, captures) goes side by side, and waits
meanwhile. The runs take turns by a lock of the operating system, which ends with the process that holds it. A run that
is alone on the machine takes no turns. The device's memory is shared out beforehand: a run of gigabytes waits until
others have ended that need the rest.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import IO

VARIABLE = "MUGRAPH_SIDE_BY_SIDE"
"""NUMBER:FOLDER in the environment of the runs: how many there are, and where their locks are."""


_SLOTS = 32
"""Parts that the device's memory is shared out in."""
_LOOK_S = 0.1


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
    with _opened(folder, "device") as device:
        # Who waits to be alone holds the gate, so that those who share cannot follow one another for ever.
        with _opened(folder, "gate") as gate:
            _lock(gate, alone=alone)
            _lock(device, alone=alone)
        yield  # closing the file releases it


@contextlib.contextmanager
def memory(share: float) -> Generator[None]:
    """Wait until no other run has promised itself so much of the device's memory that this share is not left; it is
    this run's inside. share: from 0 to 1; a run that needs more than there is waits until it is alone"""
    folder = os.environ.get(VARIABLE, "").partition(":")[2]
    needed = min(_SLOTS, int(share * _SLOTS))  # many small ones leave each other alone
    if not folder or sys.platform == "win32" or not needed:
        yield
        return
    with contextlib.ExitStack() as held:
        with _opened(folder, "memory") as gate:  # one after the other, so that none waits for one that waits for it
            _lock(gate)
            free = list(range(_SLOTS))
            while needed:
                for slot in tuple(free):
                    file = _opened(folder, f"memory-{slot}")
                    if needed and _lock(file, wait=False):
                        held.enter_context(file)
                        free.remove(slot)
                        needed -= 1
                    else:
                        file.close()
                if needed:
                    time.sleep(_LOOK_S)
        yield


def _lock(file: IO[bytes], *, alone: bool = True, wait: bool = True) -> bool:
    """Whether it is locked; closing it releases it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _opened(folder: str, name: str) -> IO[bytes]:
    """A file of this caller alone: locks of one open file do not exclude each other."""
    return open(Path(folder, name), "ab")
