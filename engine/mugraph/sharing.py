"""Several runs on one machine, side by side: `mugraph bench files --jobs`.

What is timed has the device alone; what only runs there (tests against float64, captures) goes side by side, and waits
meanwhile. The runs take turns by a lock of the operating system, which ends with the process that holds it. A run that
is alone on the machine takes no turns. The device's memory is shared out as well: a run of gigabytes waits before its
first turn until others have ended that need the rest.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import IO

from mugraph.stopwatch import Stopwatch

VARIABLE = "MUGRAPH_SIDE_BY_SIDE"
"""NUMBER:FOLDER in the environment of the runs: how many there are, and where their locks are."""


_SLOTS = 32
"""Parts that the device's memory is shared out in."""
_LOOK_S = 0.1


def environment(count: int, folder: Path) -> Mapping[str, str]:
    """What each of `count` runs has in its environment. folder: is there as long as they are"""
    if count < 2:
        return {}
    threads = str(max(1, processors() // count))
    shared = {"OMP_NUM_THREADS": threads, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    return {**{name: os.environ.get(name, value) for name, value in shared.items()}, VARIABLE: f"{count}:{folder}"}


def processors() -> int:
    """That this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def beside() -> int:
    """How many runs share the machine, this one counted."""
    number = os.environ.get(VARIABLE, "").partition(":")[0]
    return max(1, int(number)) if number.isdecimal() else 1


@contextlib.contextmanager
def turn(*, alone: bool, spent: Stopwatch | None = None) -> Generator[None]:
    """Wait until this process may launch on the device. alone: nobody else launches there inside. spent: what the
    seconds of waiting count in, which are not those of what is done inside

    Who times goes first: of many who time and launch by turns, those who launch gather meanwhile, and go together.
    """
    folder = _folder()
    if folder is None:
        yield
        return
    with contextlib.ExitStack() as held:
        with _waited.on(), spent.on("waiting") if spent is not None else contextlib.nullcontext():
            for promised in tuple(_promised):  # before the device, which nobody keeps who waits for memory
                promised.hold(folder)
            held.enter_context(_device(folder, alone=alone))
        yield


def waited_s() -> float:
    """For which this process has waited for its turns, a thread of it at least: that is no time of its own."""
    return _waited.seconds


class _Waited:
    """Seconds in which at least one thread waited."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended_s, self._since, self._waiting = 0.0, 0.0, 0

    @contextlib.contextmanager
    def on(self) -> Generator[None]:
        with self._lock:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting:
                    self._ended_s += time.monotonic() - self._since

    @property
    def seconds(self) -> float:
        with self._lock:
            return self._ended_s + (time.monotonic() - self._since if self._waiting else 0.0)


_waited = _Waited()


def _device(folder: Path, *, alone: bool) -> contextlib.ExitStack:
    """Locked until it is closed. Nobody who shares it comes in while somebody who times holds the gate, or waits."""
    with contextlib.ExitStack() as held, waiting(folder):
        gate = held.enter_context(_opened(folder, "gate"))
        _lock(gate, alone=not alone)
        _lock(held.enter_context(_opened(folder, "device")), alone=alone)
        if not alone:
            gate.close()
        return held.pop_all()


def is_waiting(folder: Path, process: int) -> bool:
    """Whether a process waits for others, which is no time of its own."""
    return any(folder.glob(f"waits-{process}-*"))


@contextlib.contextmanager
def waiting(folder: Path) -> Generator[None]:
    said = folder / f"waits-{os.getpid()}-{threading.get_ident()}"
    said.touch()
    try:
        yield
    finally:
        said.unlink(missing_ok=True)


class Memory:
    """A share of the device's memory, from 0 to 1. A run that needs more than there is waits until it is alone."""

    def __init__(self, share: float) -> None:
        self._needed = min(_SLOTS, int(share * _SLOTS))  # many small ones leave each other alone
        self._lock = threading.Lock()
        self._held = contextlib.ExitStack()

    def hold(self, folder: Path) -> None:
        """Wait until no other run holds so much of it that this share is not left."""
        with self._lock:
            if not self._needed:
                return
            # One run after the other, so that none waits for one that waits for it.
            with waiting(folder), _opened(folder, "memory") as gate:
                _lock(gate)
                free = list(range(_SLOTS))
                while self._needed:
                    for slot in tuple(free):
                        file = _opened(folder, f"memory-{slot}")
                        if self._needed and _lock(file, wait=False):
                            self._held.enter_context(file)
                            free.remove(slot)
                            self._needed -= 1
                        else:
                            file.close()
                    if self._needed:
                        time.sleep(_LOOK_S)

    def release(self) -> None:
        self._held.close()


_promised: list[Memory] = []
"""What the first turn waits for."""


@contextlib.contextmanager
def memory(share: float) -> Generator[None]:
    """From its first turn inside on this process holds the share; its threads have it in common."""
    promised = Memory(share)
    _promised.append(promised)
    try:
        yield
    finally:
        _promised.remove(promised)
        promised.release()


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


def _opened(folder: Path, name: str) -> IO[bytes]:
    """A file of this caller alone: locks of one open file do not exclude each other."""
    return open(folder / name, "ab")


def _folder() -> Path | None:
    """Where the locks are; None for a run that is alone on the machine."""
    folder = os.environ.get(VARIABLE, "").partition(":")[2]
    return Path(folder) if folder and sys.platform != "win32" else None
