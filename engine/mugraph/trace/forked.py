"""This process's forkserver: started when it is first needed, and again where it has died. Linux only; elsewhere each
trace is a process that imports PyTorch for itself."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mugraph.trace.fork_order import END, Order

_log = logging.getLogger("mugraph.trace")

COMMAND = (sys.executable, "-P", "-m", "mugraph.trace.forkserver")
_LAST_S = 10.0
"""That a process may take to end once it is killed."""


_EARLY = ("PYTHON", "LD_", "PATH", "TORCH", "PYTORCH", "TRITON", "CUDA", "OMP_", "MKL_", "KMP_")
"""What these begin is read when Python starts, or PyTorch is imported; all else is set anew for each trace."""


class Gone(Exception):
    """The forkserver cannot be used: it does not start, has died, or serves somebody else."""


@dataclass
class Forkserver:
    """read: what it has read of its environment."""

    process: subprocess.Popen[bytes]
    read: Mapping[str, str]
    owner: int = field(default_factory=os.getpid)
    _said: bytes = b""

    @staticmethod
    def started(environment: Mapping[str, str]) -> Forkserver:
        """Raises OSError."""
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # where it cannot start, a process of its own says why
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        return Forkserver(process, _read_early(environment))

    def serves(self, environment: Mapping[str, str]) -> bool:
        return self.owner == os.getpid() and self.process.poll() is None and self.read == _read_early(environment)

    def status(self, order: Order, timeout_s: float) -> int | None:
        """Of the forked process, negative for a signal; None where it was killed because of the time. Raises Gone."""
        self._write(msgspec.json.encode(order) + b"\n")
        answer = self._answer(timeout_s)
        if answer is None:
            self._write(END)
            if self._answer(_LAST_S) is None:
                self.end()
        return answer

    def end(self) -> None:
        """It and what it has forked: at the end of its input it kills that."""
        if self.owner != os.getpid():  # this process was forked from the one that uses it
            return
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        try:
            self.process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line)
        except (OSError, ValueError) as error:
            raise Gone("it has died") from error

    def _answer(self, timeout_s: float) -> int | None:
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._said:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            data = self.process.stdout.read(1 << 12)
            if not data:
                raise Gone("it has died")
            self._said += data
        line, _, self._said = self._said.partition(b"\n")
        return int(line)


def _read_early(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_EARLY)}


_lock = threading.Lock()
_current: Forkserver | None = None


def process_id() -> int | None:
    """Of the forkserver that runs."""
    current = _current
    return current.process.pid if current is not None and current.owner == os.getpid() else None


def begin(environment: Mapping[str, str]) -> None:
    """Start it without waiting for it, before something is to be traced."""
    if sys.platform == "linux" and _lock.acquire(blocking=False):
        try:
            with contextlib.suppress(Gone):
                _ready(environment)
        finally:
            _lock.release()


def status(arguments: tuple[str, str], said: Path, environment: Mapping[str, str], timeout_s: float) -> int | None:
    """Of `child.main` with these arguments, as Popen has it; None where it was killed as it took longer.

    said: a file for its standard error. Raises Gone.
    """
    global _current
    if sys.platform != "linux":
        raise Gone("a fork is not safe here")
    if not _lock.acquire(blocking=False):
        raise Gone("it serves another thread")
    try:
        server = _ready(environment)
        try:
            return server.status(Order(arguments, str(said), os.getcwd(), environment), timeout_s)
        except Gone:
            server.end()
            _current = None
            raise
    finally:
        _lock.release()


def _ready(environment: Mapping[str, str]) -> Forkserver:
    global _current
    if _current is not None and not _current.serves(environment):
        _current.end()
        _current = None
    if _current is None:
        try:
            _current = Forkserver.started(environment)
        except OSError as error:
            raise Gone(str(error)) from error
    return _current
