"""Compile many candidates at once, each in a process of its own, into the cache the measuring process reads.

A processor a process: ptxas is single-threaded. The processes share Triton's cache directory, nothing else. They stand
behind others: max-autotune may be timing its choices meanwhile, and must not wait for a processor to launch them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
        count = workers or min(_MOST, max(1, processors() - 1), max(2, processors() // beside()))
        self._start = start
        self._count = count
        self._every: list[ChildProcess] = []
        self._idle: list[ChildProcess] = []
        self._known: dict[_Item, str | None] = {}
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
        self._known.clear()

    def compile(
        self,
        subjects: Sequence[_Item],
        timeout_s: float = 60,
        done: Callable[[int], None] | None = None,
    ) -> list[str | None]:
        """done: called with the number compiled so far."""
        new = [item for item in dict.fromkeys(subjects) if item not in self._known]
        self._hire(min(self._count, len(new)))
        finished = 0
        found: dict[_Item, str | None] = {}

        def one(item: _Item) -> None:
            nonlocal finished
            child = self._idle.pop()
            try:
                reply = child.ask(Warm(*item), timeout_s)
            finally:
                self._idle.append(child)
            finished += 1
            if done is not None:
                done(finished)
            found[item] = reply.reason if isinstance(reply, Failure) else None
            if not (isinstance(reply, Failure) and reply.fatal):  # a process that has died may not do so again
                self._known[item] = found[item]

        if new:
            with self.spent.on("compilation"), ThreadPoolExecutor(max(1, len(self._idle))) as threads:
                list(threads.map(one, new))
        return [found[item] if item in found else self._known[item] for item in subjects]

    def _hire(self, count: int) -> None:
        while len(self._every) < count:
            self._every.append(self._start())
            self._idle.append(self._every[-1])

    def close(self) -> None:
        for child in self._every:
            child.close()
        self._every, self._idle = [], []
