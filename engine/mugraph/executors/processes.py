"""In processes of this machine: fresh interpreters, which start in a tenth of a second and can be killed at any time.

Not multiprocessing: its spawn runs the user's main module again, and its fork copies threads and CUDA contexts.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, TypeVar, cast

from mugraph.executors.desks import Done, Wrong
from mugraph.executors.executor import CannotExecute, Lost, result_of, value_of
from mugraph.executors.requests import Do, Leave, Take, Turn
from mugraph.executors.tasks import Task
from mugraph.executors.turns import Order, Start, Turned
from mugraph.one_thread import with_one_thread
from mugraph.pickled import read_frame, write_frame
from mugraph.sharing import processors

T = TypeVar("T")
CHILD = (sys.executable, "-P", "-m", "mugraph.executors.child")
MOST = 8
"""Processes at most: a search has about as many nests, and each process holds the values of one in memory."""


class Processes:
    """workers: how many; None for the processors there are, up to MOST. Seats go to the process that has fewest.
    environment: theirs; None for this process's own"""

    name = "processes"

    def __init__(
        self,
        workers: int | None = None,
        command: Sequence[str] = CHILD,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._most = workers or min(MOST, processors())
        self._command = tuple(command)
        self._environment = environment
        self._hosts: list[_Host] = []

    @property
    def workers(self) -> int:
        return self._most

    @property
    def pids(self) -> list[int]:
        """Of the processes that run now."""
        return [host.pid for host in self._hosts if host.lives]

    def begin(self) -> None:
        with contextlib.suppress(CannotExecute):  # whoever takes a seat is told
            while len(self._alive()) < self._most:
                self._hosts.append(_Host(self._command, self._environment))

    def seat(self, start: Start) -> ProcessSeat:
        alive = self._alive()
        idle = [host for host in alive if not host.seats]
        if not idle and len(alive) < self._most:
            self._hosts.append(_Host(self._command, self._environment))
            idle = self._hosts[-1:]
        return ProcessSeat(min(idle or alive, key=lambda host: host.seats), start)

    def on_gpus(self) -> None:
        """None: this machine's GPUs belong to the measuring process."""

    def submit(self, task: Task[T]) -> Future[T]:
        alive = self._alive()
        if len(alive) < self._most and all(host.waiting for host in alive):
            self._hosts.append(_Host(self._command, self._environment))
        return min(self._hosts, key=lambda host: host.waiting).do(task)

    def interrupt(self) -> None:
        """Kills the processes that have work: a turn hears nothing from outside while it is worked on."""
        busy = [host for host in self._hosts if host.seats or host.waiting or not host.lives]
        self._hosts = [host for host in self._hosts if host not in busy]
        for host in busy:
            host.close()

    def close(self) -> None:
        hosts, self._hosts = self._hosts, []
        for host in hosts:
            host.close()

    def _alive(self) -> list[_Host]:
        for host in self._hosts:
            if not host.lives:
                host.close()
        self._hosts = [host for host in self._hosts if host.lives]
        return self._hosts


class ProcessSeat:
    def __init__(self, host: _Host, start: Start) -> None:
        self._host = host
        self._number = host.take(start)

    @property
    def pid(self) -> int:
        return self._host.pid

    def turn(self, order: Order) -> Future[Turned]:
        return self._host.turn(self._number, order)

    def close(self) -> None:
        self._host.leave(self._number)


class _Host:
    """One process and the thread that speaks with it. Raises CannotExecute."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None) -> None:
        try:
            self._process = subprocess.Popen(
                command,
                env=with_one_thread(os.environ if environment is None else environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # a Ctrl-C at the terminal is ours to handle
            )
        except OSError as error:
            raise CannotExecute(f"a process to search in cannot be started: {error}") from None
        self._input = cast(BinaryIO, self._process.stdin)
        self._output = cast(BinaryIO, self._process.stdout)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mugraph-search")
        self._numbers = itertools.count()
        self._closing = threading.Lock()
        self._closed = False
        self._lost = False  # it does not answer, and may not be seen to have ended yet
        self.seats = 0
        self.waiting = 0
        """Tasks that it has not answered."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lives(self) -> bool:
        return not self._closed and not self._lost and self._process.poll() is None

    def take(self, start: Start) -> int:
        number = next(self._numbers)
        self.seats += 1
        self._later(lambda: self._write(Take(number, start)))
        return number

    def leave(self, number: int) -> None:
        self.seats -= 1
        self._later(lambda: self._write(Leave(number)))

    def turn(self, number: int, order: Order) -> Future[Turned]:
        try:
            return self._thread.submit(self._turned, number, order)
        except RuntimeError:  # it was closed
            future: Future[Turned] = Future()
            future.set_exception(Lost("the process was ended"))
            return future

    def do(self, task: Task[T]) -> Future[T]:
        try:
            future = self._thread.submit(self._done, task)
        except RuntimeError:  # it was closed
            future = Future[T]()
            future.set_exception(Lost("the process was ended"))
            return future
        self.waiting += 1
        future.add_done_callback(self._answered)
        return future

    def _answered(self, _: object) -> None:
        self.waiting -= 1

    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._process.kill()
        self._process.wait()
        self._thread.shutdown(wait=True, cancel_futures=False)  # what waits fails at once: the pipes have ended
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()

    def _turned(self, number: int, order: Order) -> Turned:
        answer = self._asked(Turn(number, order))
        if isinstance(answer, Turned | Wrong):
            return result_of(answer)
        raise self._gone()

    def _done(self, task: Task[T]) -> T:
        answer = self._asked(Do(task))
        if isinstance(answer, Done | Wrong):
            return cast("T", value_of(answer))
        raise self._gone()

    def _asked(self, request: Turn | Do) -> object:
        try:
            write_frame(self._input, request)
            return read_frame(self._output)
        except (OSError, ValueError) as error:
            self._lost = True
            raise Lost(f"a process of the search cannot be spoken with: {error}") from None

    def _gone(self) -> Lost:
        self._lost = True
        return Lost(f"a process of the search ended with status {self._process.poll()}")

    def _later(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):
            self._thread.submit(work)

    def _write(self, request: Take | Leave) -> None:
        with contextlib.suppress(OSError, ValueError):  # the turn that follows says that it is lost
            write_frame(self._input, request)
