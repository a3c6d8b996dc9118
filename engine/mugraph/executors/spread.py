"""A search whose nests are worked on by an executor, in rounds: each nest that has something left to do gets a turn.

How much work a nest is granted depends only on what it has found, and results are taken in the order of the nests. So a
search finds the same, in the same order, with one worker and with a hundred. If a worker dies, its nest is begun again
elsewhere with the same orders; results that it has already given are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, TimeoutError

from mugraph.executors.executor import CannotExecute, Executor, Lost, Seat
from mugraph.executors.inline import Inline
from mugraph.executors.turns import Order, Start, Turned
from mugraph.ir.program import TensorProgram
from mugraph.search.run import FIRST_SHARE, HIT_WEIGHT, SATURATION_SHARE, loop_sets, summary
from mugraph.search.topologies.frame import check
from mugraph.search.topologies.limits import Found, Limits, Stats, never

TURN = 20_000
"""Work granted to a nest in a round, while it has no topology: long enough that messages cost little beside it."""
_LOOK_S = 0.05
"""Seconds between two looks at whether to stop."""
_LOSSES = 3
"""After so many workers have died over one nest it is worked on here. Whatever kills it would have killed a plain
search."""


class SpreadSearch:
    """As mugraph.search.run.Search, on an executor. Raises NotSearchable, and from `run` CannotExecute."""

    def __init__(
        self,
        program: TensorProgram,
        limits: Limits | None,
        executor: Executor,
        cancelled: Callable[[], bool] = never,
    ) -> None:
        check(program)
        self.program, self.limits, self._cancelled = program, limits or Limits(), cancelled
        self._executor = executor
        self._began = time.monotonic()
        self._seconds: float | None = None
        self._count = 0
        self._nests: list[_Nest] = []
        self._stopped_by = ""
        self.losses = 0

    @property
    def stats(self) -> Stats:
        running = self._seconds is None
        seconds = time.monotonic() - self._began if self._seconds is None else self._seconds
        accounts = [nest.state.account for nest in self._nests if nest.state is not None]
        return summary(accounts, self._count, self._stopped_by, seconds, running=running)

    def run(self) -> Iterator[Found]:
        """Topologies, each once; ends when the space, the limits or the caller ends it."""
        self._began, self._seconds = time.monotonic(), None
        self._count, self._stopped_by = 0, ""
        starts = [Start(self.program, loops, self.limits) for loops in loop_sets(self.program, self.limits)]
        self._nests = [_Nest(start, self._executor, self._wait) for start in starts]
        work = self.limits.work
        try:
            yield from self._rounds(int(work * FIRST_SHARE), until_hit=True)
            yield from self._rounds(int(work * SATURATION_SHARE))
            self._stop_saturating("work")
            yield from self._rounds(work)
        finally:
            if self._stopped_by or any(nest.is_busy for nest in self._nests):
                self._executor.interrupt()
            for nest in self._nests:
                nest.close()
            self.losses = sum(nest.losses for nest in self._nests)
            self._seconds = time.monotonic() - self._began

    def _rounds(self, work: int, until_hit: bool = False) -> Iterator[Found]:
        """Rounds, until so much work is done in all."""
        while not self._stopped_by and sum(nest.work for nest in self._nests) < work:
            waiting = [nest for nest in self._nests if not nest.over and not (until_hit and nest.hit)]
            if not waiting:
                return
            for nest in waiting:
                nest.ask(TURN * (HIT_WEIGHT if nest.hit else 1), until_hit)
            for nest in waiting:
                turned = nest.answer()
                if turned is None:
                    return
                for block in turned.blocks:
                    self._count += 1
                    yield Found(block, time.monotonic() - self._began)
            if sum(nest.bytes for nest in self._nests if not nest.over) > self.limits.memory:
                self._stop_saturating("memory")

    def _stop_saturating(self, reason: str) -> None:
        for nest in self._nests:
            nest.stop = nest.stop or reason

    def _wait(self, future: Future[Turned]) -> Turned | None:
        """The turn's result; None when the search is to be stopped. Raises what the future raises."""
        while True:
            if self._cancelled():
                self._stopped_by = "cancelled"
            elif time.monotonic() - self._began > self.limits.seconds:
                self._stopped_by = "time"
            if self._stopped_by:
                return None
            try:
                return future.result(_LOOK_S)
            except TimeoutError:
                continue


class _Nest:
    """A nest, wherever it is worked on. stop: goes with its next order. state: after the last turn that came back."""

    def __init__(self, start: Start, executor: Executor, wait: Callable[[Future[Turned]], Turned | None]) -> None:
        self._start, self._executor, self._wait = start, executor, wait
        self._orders: list[Order] = []
        self._seat: Seat | None = None
        self._future: Future[Turned] | None = None
        self.state: Turned | None = None
        self.stop = ""
        self.losses = 0

    @property
    def is_busy(self) -> bool:
        return self._future is not None and not self._future.done()

    @property
    def hit(self) -> bool:
        return self.state is not None and self.state.hit

    @property
    def over(self) -> bool:
        return self.state is not None and self.state.over

    @property
    def work(self) -> int:
        return self.state.work if self.state is not None else 0

    @property
    def bytes(self) -> int:
        return self.state.account.bytes if self.state is not None else 0

    def ask(self, work: int, until_hit: bool) -> None:
        """Begin a turn."""
        self._orders.append(Order(work, until_hit, self.stop))
        self.stop = ""
        if self._seat is None:
            self._sit()
        else:
            self._future = self._seat.turn(self._orders[-1])

    def answer(self) -> Turned | None:
        """The result of the turn that was begun; None when the search is to be stopped. Raises NotSearchable,
        CannotExecute."""
        while True:
            assert self._future is not None
            try:
                turned = self._wait(self._future)
            except Lost:
                self.losses += 1
                self._sit()
                continue
            self.state = turned or self.state
            if turned is not None and turned.over:
                self.close()
            return turned

    def close(self) -> None:
        seat, self._seat = self._seat, None
        if seat is not None:
            seat.close()

    def _sit(self) -> None:
        """Begins the nest at some worker and repeats there all orders so far."""
        self.close()
        executor = self._executor if self.losses < _LOSSES else Inline()
        try:
            self._seat = executor.seat(self._start)
        except CannotExecute:
            self._seat = Inline().seat(self._start)
        for order in self._orders:
            self._future = self._seat.turn(order)
