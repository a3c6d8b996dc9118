"""Compile many candidates at once, each in a process of its own, into the cache the measuring process reads.

A processor a process: ptxas is single-threaded. The processes share Triton's cache directory, nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from mugraph.stopwatch import Stopwatch
from mugraph.tune.messages import Failure, InputSpec, Subject, Warm
from mugraph.tune.process import ChildProcess

# More processes than this only take device memory: each holds a CUDA context.
_MOST = 12


class CompilePool:
    """`compile` answers, for each subject in order, why it cannot be compiled, or None."""

    def __init__(self, start: Callable[[], ChildProcess] = ChildProcess, workers: int | None = None) -> None:
        count = workers or min(_MOST, max(1, (os.cpu_count() or 2) - 1))
        self._start = start
        self._count = count
        self._idle: list[ChildProcess] = []
        self.spent = Stopwatch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self) -> None:
        """Start the processes without waiting for them. Raises process.Unavailable."""
        while len(self._idle) < self._count:
            self._idle.append(self._start())
        for child in self._idle:
            child.begin()

    def compile(
        self,
        subjects: Sequence[tuple[Subject, tuple[InputSpec, ...]]],
        timeout_s: float = 60,
        done: Callable[[int], None] | None = None,
    ) -> list[str | None]:
        """done: called with the number compiled so far."""
        while len(self._idle) < min(self._count, len(subjects)):
            self._idle.append(self._start())
        finished = 0

        def one(item: tuple[Subject, tuple[InputSpec, ...]]) -> str | None:
            nonlocal finished
            child = self._idle.pop()
            try:
                reply = child.ask(Warm(*item), timeout_s)
            finally:
                self._idle.append(child)
            finished += 1
            if done is not None:
                done(finished)
            return reply.reason if isinstance(reply, Failure) else None

        with self.spent.on("compilation"), ThreadPoolExecutor(max(1, len(self._idle))) as threads:
            return list(threads.map(one, subjects))

    def close(self) -> None:
        for child in self._idle:
            child.close()
        self._idle = []
