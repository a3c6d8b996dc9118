"""The process that has PyTorch imported, and forks once for each file that is traced (Linux):

    python -P -m mugraph.trace.forkserver

To import PyTorch takes seconds, and a fork milliseconds. The user's code runs in the forked process alone, as in
`child`; this one never sees it, and has no threads, so that a fork is safe.

Standard input has a line of JSON for each order (`Order`), or END to kill the process that traces now. Standard output
answers each order with the status of its process, negative for a signal. At the end of standard input, which is that of
the process that asked, everything here ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import tempfile
import time
import traceback

import msgspec

from mugraph.trace import child
from mugraph.trace.fork_order import END, Order

_LOOK_S = 0.005


def main() -> None:
    child.prepare()
    from mugraph.trace.warm import warm_up  # which imports PyTorch

    warm_up()
    lines = _Lines()
    while (line := lines.next()) is not None:
        if line == END:  # of an order that has been answered meanwhile
            continue
        order = msgspec.json.decode(line, type=Order)
        process = os.fork()
        if process == 0:
            _trace(order)
        os.write(1, b"%d\n" % _status(process, lines))


class _Lines:
    """Of standard input, without Python's buffers, which a fork would share."""

    def __init__(self) -> None:
        self._read = b""

    @property
    def waits(self) -> bool:
        """Is there a line, or the end, to be read?"""
        return b"\n" in self._read or bool(select.select([0], [], [], 0)[0])

    def next(self) -> bytes | None:
        """None at the end."""
        while b"\n" not in self._read:
            data = os.read(0, 1 << 16)
            if not data:
                return None
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line + b"\n"


def _status(process: int, lines: _Lines) -> int:
    """Of a process, once it has ended, with what it has started in its group. It is killed where that is asked for."""
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if lines.waits:
            _kill(process)
            if lines.next() is None:
                sys.exit()
            break
        time.sleep(_LOOK_S)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    _kill(process)  # it is a zombie yet, so its number is nobody else's
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has no session yet, or all of it has ended
        os.killpg(process, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _trace(order: Order) -> None:
    """In the forked process. Never returns."""
    try:
        os.setsid()
        nothing, said = os.open(os.devnull, os.O_RDONLY), os.open(order.said, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(nothing, 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.chdir(order.folder)
        os.environ.clear()
        os.environ.update(order.environment)
        tempfile.tempdir = None
        child.main([*order.arguments])
    except BaseException as error:  # as Python would say it; nothing of this process may go on in the fork
        traceback.print_exception(error)
        sys.stderr.flush()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
