"""A long-lived process of our own that is asked one thing at a time, may hang or die, and is then replaced.

One bad kernel poisons its whole CUDA context, so nothing that launches an unproven kernel runs in the caller's process.
It is started as a fresh interpreter, not by fork and not by multiprocessing's spawn: the first breaks CUDA, the second
runs the user's main module again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO, Self, cast

from mugraph.child_log import pass_on
from mugraph.giving_up import LOOK_S, WORDS, GivingUp
from mugraph.pickled import read_frame, write_frame
from mugraph.scratch import inside, scratch
from mugraph.store.place import cache_folder
from mugraph.tune.messages import Failure, Hello, Reply, Request

_log = logging.getLogger("mugraph.tune")

CHILD = (sys.executable, "-P", "-m", "mugraph.tune.measure_child")
COMPILER = (*CHILD, "--compiles")
"""One that makes torch.compile ready before it greets."""
BEHIND = (*CHILD, "--behind")
"""One that leaves the processors to whoever else wants them."""


class Unavailable(Exception):
    """The measuring process cannot be started at all; one sentence."""


class ChildProcess:
    """Starts on the first question; `ask` never raises for what the child does, it answers with a Failure.

    giving_up: while it is on, questions fail. A child that works on one is killed; one that still starts goes on.
    """

    def __init__(
        self,
        command: Sequence[str] = CHILD,
        *,
        environment: dict[str, str] | None = None,
        start_timeout_s: float = 120,
        giving_up: GivingUp | None = None,
    ) -> None:
        self._command = tuple(command)
        self._giving_up = giving_up
        # Its temporary folder goes with it; what torch.compile keeps for another run does not.
        self._scratch = scratch("measure")
        kept = {"TORCHINDUCTOR_CACHE_DIR": str(cache_folder() / "torch-inductor")}
        self._environment = inside(self._scratch, {**kept, **os.environ, **(environment or {})})
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: queue.Queue[object | None] = queue.Queue()
        # Appended to by the child through a file of its own: a shared one would share its position with our reads.
        self._log = open(os.path.join(self._scratch.name, "log"), "w+b")  # noqa: SIM115 - closed by close()
        self.hello: Hello | None = None
        self._last_line = ""
        self.restarts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def answers(self) -> bool:
        """Whether it has been started, and need not be waited for."""
        return self.running and self.hello is not None

    @property
    def pid(self) -> int | None:
        """While it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def begin(self) -> None:
        """Start if it is not running, without waiting for it: it imports for seconds. Raises Unavailable."""
        if not self.running:
            self._spawn()

    def start(self) -> Hello:
        """Start if it is not running, and wait until it can be asked. Raises Unavailable."""
        if self._given_up:
            raise Unavailable(WORDS)
        self.begin()
        if self.hello is not None:
            return self.hello
        first = self._next(self._start_timeout_s)
        if isinstance(first, Hello):
            self.hello = first
            return first
        if self._given_up:  # it goes on starting, for whoever asks next
            raise Unavailable(WORDS)
        reason = first.reason if isinstance(first, Failure) else "it answered out of turn"
        tail = self.log_tail()
        self.kill()
        raise Unavailable(f"the measuring process did not start: {reason}{f' ({tail})' if tail else ''}")

    def _spawn(self) -> None:
        self.kill()
        self._log.seek(0)
        self._log.truncate()
        self._last_line = ""
        try:
            with open(self._log.name, "ab") as log:
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,  # a Ctrl-C at the terminal is ours to handle; we kill the child ourselves
                )
        except OSError as error:
            raise Unavailable(f"the measuring process cannot be started: {error}") from error
        self._process = process
        self._replies = queue.Queue()
        reader = threading.Thread(
            target=_pump, args=(cast(BinaryIO, process.stdout), self._replies), name="mugraph-measure", daemon=True
        )
        reader.start()

    def ask(self, request: Request, timeout_s: float) -> Reply:
        """The answer, or a Failure when the process hung, died or could not be started. After a fatal failure the next
        question goes to a new process, which has nothing prepared."""
        try:
            self.start()
        except Unavailable as error:
            return Failure(str(error), fatal=True)
        assert self._process is not None
        try:
            write_frame(cast(BinaryIO, self._process.stdin), request)
            reply = self._next(timeout_s)
        except OSError:
            reply = Failure(self._death(), fatal=True)
        if isinstance(reply, Failure) and reply.fatal:
            self.kill()
            self.restarts += 1
        return reply

    def _next(self, timeout_s: float) -> Reply:
        deadline = time.monotonic() + timeout_s
        while not self._given_up:
            left = deadline - time.monotonic()
            try:
                reply = self._replies.get(timeout=max(0.0, left if self._giving_up is None else min(left, LOOK_S)))
            except queue.Empty:
                if time.monotonic() < deadline:
                    continue
                return Failure(f"no answer within {timeout_s:.0f} s", fatal=True)
            return Failure(self._death(), fatal=True) if reply is None else cast(Reply, reply)
        return Failure(WORDS, fatal=True)

    @property
    def _given_up(self) -> bool:
        return self._giving_up is not None and self._giving_up.on

    def _death(self) -> str:
        status = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self._process.wait(timeout=5)
        tail = self.log_tail()
        return f"the measuring process ended with status {status}{f': {tail}' if tail else ''}"

    def log_tail(self) -> str:
        """The last line the process wrote to its standard error, which is mostly the error it died of."""
        lines = [line.strip() for line in self._said() if line.strip()]
        self._last_line = lines[-1][:300] if lines else self._last_line
        return self._last_line

    def _said(self) -> list[str]:
        """Its standard error since this was last asked, without what it logged, which is logged here."""
        return pass_on(self._log.read().decode(errors="replace").split("\n"))

    def kill(self) -> None:
        """End the process now, whatever it is doing."""
        process, self._process, self.hello = self._process, None, None
        if process is None:
            return
        if process.poll() is None:
            _end(process)
        process.wait()
        self.log_tail()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def close(self) -> None:
        self.kill()
        self._log.close()
        self._scratch.cleanup()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Now, with what it has started: PyTorch's processes that compile look for their parent once a minute only."""
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _pump(stream: BinaryIO, replies: queue.Queue[object | None]) -> None:
    """Move frames from the pipe to the queue; None at its end."""
    try:
        while (reply := read_frame(stream)) is not None:
            replies.put(reply)
    except (OSError, ValueError) as error:  # a pipe that was closed because the process is being ended
        _log.debug("the measuring process cannot be heard: %s", error)
    except Exception:
        _log.warning("the measuring process said what cannot be read", exc_info=True)
    replies.put(None)
