"""The search units of a file, solved side by side in processes of their own, before their regions ask for them.

Each unit is solved as it would be here, so the results are the same. The units that may gain most for their seconds are
begun first; none of them gets so much of the file's time that nothing is left for the others. Only where nothing is
measured: a measurement wants a quiet machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from typing import Literal

from mugraph import sharing
from mugraph.events import Event, Working
from mugraph.executors.executor import CannotExecute, Executor, Lost
from mugraph.solve.ending import SEARCHED
from mugraph.solve.filetime import FileTime
from mugraph.solve.unit_task import Solved, UnitTask

MOST = 8
"""Processes at most: each holds the values of a search in memory."""
_LOOK_S = 0.02
"""Seconds between two looks at whether to stop."""
DIRECT = 0.2
"""Of the work on a unit that is searched, the work on one of which there is nothing to search."""
_LOSSES = 2
"""Processes that may die over one unit before it is solved in this one."""

Answer = Solved | Literal["late", "given up", "here"]
"""late: it was not begun in time. given up: it was not done in time. here: it is to be solved in this process."""


@dataclass
class _Waiting:
    """effort: 1 for a unit that is searched. number: of equal gains the first added goes first"""

    task: UnitTask
    gain_us: float
    number: int
    effort: float = 1.0
    losses: int = 0

    @property
    def order(self) -> tuple[float, int]:
        """What gains most for its seconds goes first."""
        return -self.gain_us / self.effort, self.number


class Together:
    """executor: who solves units; None solves none. workers: units at a time"""

    def __init__(self, executor: Executor | None, workers: int, time: FileTime) -> None:
        self._executor, self._workers, self._time = executor, workers, time
        self._waiting: dict[str, _Waiting] = {}
        self._running: dict[str, tuple[_Waiting, Future[Solved]]] = {}
        self._done: dict[str, Answer] = {}
        self._number = 0
        self._begun = False

    def add(self, key: str, task: UnitTask, gain_us: float, effort: float = 1.0) -> None:
        """Equal keys are one unit, which gains for each of them. effort: 1, or DIRECT"""
        if self._executor is None or key in self._running or key in self._done:
            return
        waiting = self._waiting.setdefault(key, _Waiting(task, 0.0, self._number, effort))
        waiting.gain_us += gain_us
        self._number += 1

    @property
    def is_worth_it(self) -> bool:
        """Whether processes have been started, or there is enough to do for them."""
        return self._begun or _effort(self._waiting.values()) > 1

    def answer(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, Answer]:
        """Waits for the unit; others go on meanwhile. region: for events"""
        if key in self._waiting and not self.is_worth_it:
            del self._waiting[key]
        told = -1
        with self._time.counting():
            while key in self._waiting or key in self._running:
                self._pump()
                done, every = len(self._done), len(self._done) + len(self._running) + len(self._waiting)
                if done != told:
                    told = done
                    yield Working(region, f"solving {every} search units, {self._workers} at a time", done, every)
                if cancelled():
                    self.stop()
                    return "here"
                wait([future for _, future in self._running.values()], _LOOK_S, "FIRST_COMPLETED")
                self._gather()
                if self._time.is_long_over:
                    self._give_up()
        return self._done.pop(key, "here")

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
        for key, waiting in in_order[: max(0, self._workers - len(self._running))]:
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


def _effort(units: Iterable[_Waiting]) -> float:
    return sum(one.effort for one in units)


def processors() -> int:
    """That this run may use: several runs side by side share them."""
    return max(1, min(MOST, sharing.processors() // sharing.beside()))


@contextlib.contextmanager
def together(executor: Executor | None, time: FileTime) -> Generator[Together | None]:
    """executor: None where no units are solved side by side. Its processes start with the first unit; those that still
    work at the end of it are ended."""
    if executor is None:
        yield None
        return
    units = Together(executor, executor.workers, time)
    try:
        yield units
    finally:
        units.stop()
