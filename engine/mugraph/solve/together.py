"""The search units of a file, solved side by side in processes of their own, before their regions ask for them.

Each unit is solved as it would be here, so the results are the same. The units that may gain most for their seconds are
begun first; none of them gets so much of the file's time that nothing is left for the others. Where something is
measured, the processes search alone (in_turn.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, Self, TypeVar

from mugraph import sharing
from mugraph.events import Event, Working
from mugraph.executors.executor import CannotExecute, Executor, Lost
from mugraph.executors.tasks import Task
from mugraph.solve.ending import SEARCHED
from mugraph.solve.filetime import FileTime
from mugraph.solve.unit_task import Solved, UnitTask

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MOST = 8
"""Processes at most: each holds the values of a search in memory."""
_LOOK_S = 0.02
"""Seconds between two looks at whether to stop."""
DIRECT = 0.2
"""Of the work on a unit that is searched, the work on one of which there is nothing to search."""
_LOSSES = 2
"""Processes that may die over one unit before it is solved in this one."""

NoAnswer = Literal["late", "given up", "here"]
"""late: it was not begun in time. given up: it was not done in time. here: it is to be solved in this process."""
Answer = Solved | NoAnswer


class Limited(Task[T_co], Protocol[T_co]):
    """A task that is begun when its search may take so many seconds. stops_at: as Ending has it"""

    def within(self, left_s: float, stops_at: float = ...) -> Self: ...


class Units(Protocol):
    """Who solves the search units of a file: equal keys are one unit."""

    def add(self, key: str, task: UnitTask, gain_us: float, effort: float = 1.0, *, times: int = 1) -> None:
        """gain_us: at most, each of the `times` that it is executed. effort: 1, or DIRECT"""
        ...

    def answer(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, Answer]:
        """region: for events"""
        ...


@dataclass
class _Waiting(Generic[T]):
    """effort: 1 for a unit that is searched. number: of equal gains the first added goes first"""

    task: Limited[T]
    gain_us: float
    number: int
    effort: float = 1.0
    losses: int = 0

    @property
    def order(self) -> tuple[float, int]:
        """What gains most for its seconds goes first."""
        return -self.gain_us / self.effort, self.number


class Together(Generic[T]):
    """executor: who works on tasks; None: nobody. workers: tasks at a time. ahead: that may be begun besides, so that
    no worker has to wait for `work`"""

    def __init__(self, executor: Executor | None, workers: int, time: FileTime, ahead: int = 0) -> None:
        self._executor, self._workers, self._time, self._ahead = executor, workers, time, ahead
        self._waiting: dict[str, _Waiting[T]] = {}
        self._running: dict[str, tuple[_Waiting[T], Future[T]]] = {}
        self._done: dict[str, T | NoAnswer] = {}
        self._number = 0
        self._begun = False

    def add(self, key: str, task: Limited[T], gain_us: float, effort: float = 1.0, *, times: int = 1) -> None:
        """Equal keys are one unit, which gains for each of them. gain_us, effort, times: as `Units` has them"""
        if self._executor is None or key in self._running or key in self._done:
            return
        waiting = self._waiting.setdefault(key, _Waiting(task, 0.0, self._number, effort))
        waiting.gain_us += times * gain_us
        self._number += 1

    @property
    def is_worth_it(self) -> bool:
        """Whether processes have been started, or there is enough to do for them."""
        return self._begun or _effort(self._waiting.values()) > 1

    @property
    def counts(self) -> tuple[int, int]:
        """Of the units that nobody has asked for yet: how many are done, and how many there are."""
        return len(self._done), len(self._done) + len(self._running) + len(self._waiting)

    @property
    def workers(self) -> int:
        return self._workers

    def answer(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, T | NoAnswer]:
        """Waits for the unit; others go on meanwhile. region: for events"""
        if key in self._waiting and not self.is_worth_it:
            self.forget(key)
        told = -1
        with self._time.counting():
            while key in self._waiting or key in self._running:
                self._pump()
                done, every = self.counts
                if done != told:
                    told = done
                    yield Working(region, f"solving {every} search units, {self._workers} at a time", done, every)
                if cancelled():
                    self.stop()
                    return "here"
                self.work()
        return self.take(key)

    def work(self, wait_s: float = _LOOK_S) -> None:
        """Begin what there are processes for, and see what is done. wait_s: for one to be done"""
        self._pump()
        wait([future for _, future in self._running.values()], wait_s, "FIRST_COMPLETED")
        self._gather()
        if self._time.is_long_over:
            self._give_up()

    def is_done(self, key: str) -> bool:
        return key in self._done

    def peek(self, key: str) -> T | NoAnswer | None:
        """What is known of it so far."""
        return self._done.get(key)

    def take(self, key: str) -> T | NoAnswer:
        """Of what is done."""
        return self._done.pop(key, "here")

    def forget(self, key: str) -> None:
        """It is not begun, if it was not."""
        self._waiting.pop(key, None)

    def stop(self) -> None:
        """Gives up all work."""
        running = self._running
        self._waiting, self._running = {}, {}
        if self._executor is not None and running:
            self._executor.interrupt()

    def _give_up(self) -> None:
        """What is still worked on; nothing waits any more."""
        assert self._executor is not None
        if self._running:
            self._done |= dict.fromkeys(self._running, "given up")
            self._running = {}
            self._executor.interrupt()

    def _pump(self) -> None:
        """Begin what there are processes for."""
        assert self._executor is not None
        self._begun = True
        if self._time.is_over:
            self._done |= dict.fromkeys(self._waiting, "late")
            self._waiting = {}
        running = [waiting for waiting, _ in self._running.values()]
        every = _effort([*self._waiting.values(), *running])
        left_s = SEARCHED * self._time.left_s * min(1.0, self._workers / max(1.0, every))
        in_order = sorted(self._waiting.items(), key=lambda row: row[1].order)
        for key, waiting in in_order[: max(0, self._workers + self._ahead - len(self._running))]:
            del self._waiting[key]
            try:
                task = waiting.task.within(left_s, self._time.stops_at)
                self._running[key] = waiting, self._executor.submit(task)
            except CannotExecute:
                self._done[key] = "here"

    def _gather(self) -> None:
        for key, (waiting, future) in list(self._running.items()):
            if not future.done():
                continue
            del self._running[key]
            try:
                self._done[key] = future.result()
            except CannotExecute:  # whatever is wrong is met again here, where it is logged
                self._done[key] = "here"
            except (Lost, CancelledError):
                waiting.losses += 1
                if waiting.losses < _LOSSES:
                    self._waiting[key] = waiting
                else:
                    self._done[key] = "here"


def _effort(units: Iterable[_Waiting[T]]) -> float:
    return sum(one.effort for one in units)


def processors() -> int:
    """That this run may use: several runs side by side share them."""
    return max(1, min(MOST, sharing.processors() // sharing.beside()))


@contextlib.contextmanager
def together(executor: Executor | None, time: FileTime) -> Generator[Together[Solved] | None]:
    """executor: None where no units are solved side by side. Its processes start with the first unit; those that still
    work at the end of it are ended."""
    if executor is None:
        yield None
        return
    units = Together[Solved](executor, executor.workers, time)
    try:
        yield units
    finally:
        units.stop()
