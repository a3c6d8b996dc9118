"""Compile many candidates at once, each in a process of its own, into the cache the measuring process reads.

A processor a process: ptxas is single-threaded. The processes share Triton's cache directory, nothing else. They stand
behind others: max-autotune may be timing its choices meanwhile, and must not wait for a processor to launch them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from types import TracebackType
from typing import Self

from mugraph.sharing import beside, processors
from mugraph.stopwatch import Stopwatch
from mugraph.tune.messages import Failure, InputSpec, Subject, Warm
from mugraph.tune.process import BEHIND, ChildProcess

# More processes than this only take device memory: each holds a CUDA context.
_MOST = 12


def _behind() -> ChildProcess:
    return ChildProcess(BEHIND)


_Item = tuple[Subject, tuple[InputSpec, ...]]


class CompilePool:
    """`compile` answers, for each subject in order, why it cannot be compiled, or None. What it has answered once it
    knows."""

    def __init__(self, start: Callable[[], ChildProcess] = _behind, workers: int | None = None) -> None:
        count = workers or min(_MOST, max(1, processors() - 1), max(2, 3 * processors() // (2 * beside())))
        self._start = start
        self._count = count
        self._every: list[ChildProcess] = []
        self._idle: queue.LifoQueue[ChildProcess] = queue.LifoQueue()
        self._asked: dict[_Item, Future[str | None]] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self.spent = Stopwatch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self) -> None:
        """Start the processes without waiting for them. Raises process.Unavailable."""
        self._hire(self._count)
        for child in self._every:
            child.begin()

    @property
    def pids(self) -> list[int]:
        """Of the processes that run now."""
        return [child.pid for child in self._every if child.pid is not None]

    def forget(self) -> None:
        """What is known of subjects."""
        self._asked = {}

    def compile(
        self,
        subjects: Sequence[_Item],
        timeout_s: float = 60,
        done: Callable[[int], None] | None = None,
    ) -> list[str | None]:
        """done: called with the number compiled so far."""
        asked = self.ask(subjects, timeout_s)
        new = {future for future in asked if not future.done()}
        if new:
            with self.spent.on("compilation"):
                for number, _ in enumerate(as_completed(new), 1):
                    if done is not None:
                        done(number)
        return [future.result() for future in asked]

    def in_order(self, subjects: Sequence[_Item], timeout_s: float = 60) -> Iterator[str | None]:
        """What `compile` answers, each as soon as it is known: others are compiled meanwhile."""
        for future in self.ask(subjects, timeout_s):
            if not future.done():
                with self.spent.on("compilation"):
                    wait([future])
            yield future.result()

    def ask(self, subjects: Sequence[_Item], timeout_s: float = 60) -> list[Future[str | None]]:
        """Have them compiled, after what was asked for before, without waiting."""
        with self._lock:
            found = {item: self._asked[item] for item in dict.fromkeys(subjects) if item in self._asked}
        new = [item for item in dict.fromkeys(subjects) if item not in found]
        if new:
            self._hire(min(self._count, len(new)))
            threads = self._threads = self._threads or ThreadPoolExecutor(self._count, "mugraph-compile")
            with self._lock:  # one that fails at once is forgotten after it is known
                made = {item: threads.submit(self._compiled, item, timeout_s) for item in new}
                self._asked |= made
            found |= made
        return [found[item] for item in subjects]

    def _compiled(self, item: _Item, timeout_s: float) -> str | None:
        child, asked = self._idle.get(), self._asked
        try:
            reply = child.ask(Warm(*item), timeout_s) if self._every else Failure("it was given up", fatal=True)
        finally:
            self._idle.put(child)
        if isinstance(reply, Failure) and reply.fatal:  # a process that has died may not do so again
            with self._lock:
                asked.pop(item, None)
        return reply.reason if isinstance(reply, Failure) else None

    def _hire(self, count: int) -> None:
        while len(self._every) < count:
            self._every.append(self._start())
            self._idle.put(self._every[-1])

    def close(self) -> None:
        every, threads = self._every, self._threads
        self._every, self._threads = [], None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)
        for child in every:
            child.close()
        if threads is not None:  # what was being compiled has failed with its process
            threads.shutdown()
        self._idle, self._asked = queue.LifoQueue(), {}
