"""The search units of a file, solved side by side in processes of their own, before their regions ask for them.

Each unit is solved as it would be here. In a first round each is searched for a short while, the units that may gain
most for their seconds first: so each region has an answer before any is searched for long. What is left of the file's
time goes to those whose search was cut short, by what they may still gain; the best so far stays their answer. Where
something is measured, the processes search alone, in one round (in_turn.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, Self, TypeVar

from mugraph import sharing
from mugraph.events import Event, Working
from mugraph.executors.executor import CannotExecute, Executor, Lost
from mugraph.executors.tasks import Task
from mugraph.solve.ending import SEARCHED
from mugraph.solve.filetime import FileTime
from mugraph.solve.unit_task import Solved, UnitTask

T = TypeVar("T")

MOST = 8
"""Processes at most: each holds the values of a search in memory."""
_LOOK_S = 0.02
"""Seconds between two looks at whether to stop."""
DIRECT = 0.2
"""Of the work on a unit that is searched, the work on one of which there is nothing to search."""
FIRST = 0.5
"""Of the seconds that are left, what a first round may take."""
FIRST_S = 2.0
"""Of a unit's search in the first round, at most: its first kernels are there by then, if it has any."""
MORE = 2.0
"""Times the seconds of its first search: a second one that gets less would find little."""
WORTH = 0.02
"""Of what a unit may gain, what its first answer has to have left for a second search."""
_LOSSES = 2
"""Processes that may die over one unit before it is solved in this one."""

NoAnswer = Literal["late", "given up", "here"]
"""late: it was not begun in time. given up: it was not done in time. here: it is to be solved in this process."""
Answer = Solved | NoAnswer


class Limited(Task[T], Protocol[T]):
    """A task that is begun when its search may take so many seconds. stops_at: as Ending has it"""

    def within(self, left_s: float, stops_at: float = ...) -> Self: ...

    def deeper(self, first: T) -> tuple[Self, float] | None:
        """The task of a second search, and the part of what the unit may gain that the first left; None where there is
        nothing more to search."""
        ...

    def better(self, first: T, second: T) -> T:
        """Of two answers."""
        ...


class Units(Protocol):
    """Who solves the search units of a file: equal keys are one unit."""

    @property
    def answers_first(self) -> bool:
        """Whether there are first answers to wait for."""
        ...

    def add(
        self, key: str, task: UnitTask, gain_us: float, effort: float = 1.0, *, times: int = 1, later: bool = False
    ) -> None:
        """gain_us: at most, each of the `times` that it is executed. effort: 1, or DIRECT. later: after what is not"""
        ...

    def first(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, Answer]:
        """What is found of it in a short while; "here" where nobody works on it. `answer` has it again, or better."""
        ...

    def work(self, wait_s: float = ...) -> None:
        """Begin what there are processes for. wait_s: for one to be done"""
        ...

    def deepen(self) -> None:
        """From now on what has a first answer is searched on, where no other unit waits for its first."""
        ...

    def answer(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, Answer]:
        """region: for events"""
        ...


@dataclass
class _Waiting(Generic[T]):
    """effort: 1 for a unit that is searched. number: of equal gains the first added goes first. later: than others of
    the first round. first: its answer; first_s: seconds of the search that found it"""

    task: Limited[T]
    gain_us: float
    number: int
    effort: float = 1.0
    later: bool = False
    losses: int = 0
    first: T | None = None
    first_s: float = 0.0

    @property
    def order(self) -> tuple[bool, bool, float, int]:
        """What gains most for its seconds goes first."""
        return self.first is not None, self.later, -self.gain_us / self.effort, self.number

    def instead(self, other: T | NoAnswer) -> T | NoAnswer:
        """Its answer, where a search has come to nothing."""
        return self.first if self.first is not None else other


class Together(Generic[T]):
    """executor: who works on tasks; None: nobody. workers: tasks at a time. ahead: that may be begun besides, so that
    no worker has to wait for `work`. rounds: a short search of each comes before a long one of any"""

    def __init__(
        self, executor: Executor | None, workers: int, time: FileTime, ahead: int = 0, *, rounds: bool = False
    ) -> None:
        self._executor, self._workers, self._time, self._ahead = executor, workers, time, ahead
        self._rounds, self._deepens = rounds, False
        self._waiting: dict[str, _Waiting[T]] = {}
        self._running: dict[str, tuple[_Waiting[T], Future[T]]] = {}
        self._done: dict[str, T | NoAnswer] = {}
        self._number = 0
        self._begun = False

    def add(
        self, key: str, task: Limited[T], gain_us: float, effort: float = 1.0, *, times: int = 1, later: bool = False
    ) -> None:
        """Equal keys are one unit, which gains for each of them. gain_us, effort, times, later: as `Units` has them"""
        if self._executor is None or key in self._running or key in self._done:
            return
        waiting = self._waiting.setdefault(key, _Waiting(task, 0.0, self._number, effort, later))
        if waiting.first is not None:  # known, and counted
            return
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

    @property
    def answers_first(self) -> bool:
        return self._rounds and self._executor is not None and self.is_worth_it

    def deepen(self) -> None:
        self._deepens = True

    def first(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, T | NoAnswer]:
        """Waits for what the first round has of the unit. region: for events"""
        if (yield from self._waited(lambda: self._is_new(key), region, cancelled)):
            return "here"
        known = self._known(key)
        return known.instead("here") if known is not None else self._done.get(key, "here")

    def answer(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, T | NoAnswer]:
        """Waits for the unit; others go on meanwhile. region: for events"""
        self.deepen()
        if key in self._waiting and not self.is_worth_it:
            self.forget(key)
        if (yield from self._waited(lambda: self._known(key) is not None, region, cancelled)):
            return "here"
        return self.take(key)

    def _known(self, key: str) -> _Waiting[T] | None:
        """Of what waits or is worked on."""
        return self._waiting.get(key) or self._running.get(key, (None,))[0]

    def _is_new(self, key: str) -> bool:
        known = self._known(key)
        return known is not None and known.first is None

    def _waited(
        self, lasts: Callable[[], bool], region: int, cancelled: Callable[[], bool]
    ) -> Generator[Event, None, bool]:
        """Until it does not last. Whether the run was cancelled meanwhile"""
        told = -1
        with self._time.counting():
            while lasts():
                self._pump()
                done, every = self.counts
                if done != told:
                    told = done
                    yield Working(region, f"solving {every} search units, {self._workers} at a time", done, every)
                if cancelled():
                    self.stop()
                    return True
                self.work()
        return False

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
            self._done |= {key: one.instead("given up") for key, (one, _) in self._running.items()}
            self._running = {}
            self._executor.interrupt()

    def _pump(self) -> None:
        """Begin what there are processes for."""
        assert self._executor is not None
        self._begun = True
        if self._time.is_over:
            self._done |= {key: one.instead("late") for key, one in self._waiting.items()}
            self._waiting = {}
        left_s, stops_at = self._time.left_s, self._time.stops_at
        every = [*self._waiting.values(), *(one for one, _ in self._running.values())]
        in_order = sorted(self._waiting.items(), key=lambda row: row[1].order)
        for key, waiting in in_order:
            if len(self._running) >= self._workers + self._ahead:
                break
            if waiting.first is not None and not self._deepens:
                break
            del self._waiting[key]
            search_s = self._search_s(waiting, every, left_s)
            if waiting.first is not None and search_s < MORE * waiting.first_s:
                self._done[key] = waiting.first
                continue
            if waiting.first is None and self._rounds:
                waiting.first_s = search_s = min(FIRST_S, FIRST * search_s)
            try:
                task = waiting.task.within(search_s, stops_at)
                self._running[key] = waiting, self._executor.submit(task)
            except CannotExecute:
                self._done[key] = waiting.instead("here")

    def _search_s(self, unit: _Waiting[T], every: Iterable[_Waiting[T]], left_s: float) -> float:
        """Of what is left: by effort where nothing is known of a unit, so that each has its part; else by gain."""
        same = [one for one in every if (one.first is None) == (unit.first is None)]
        if unit.first is None:
            part = 1 / max(1.0, _effort(same))
        else:
            part = unit.gain_us / max(unit.gain_us, sum(one.gain_us for one in same))
        return SEARCHED * left_s * min(1.0, self._workers * part)

    def _gather(self) -> None:
        for key, (waiting, future) in list(self._running.items()):
            if not future.done():
                continue
            del self._running[key]
            try:
                self._take_note(key, waiting, future.result())
            except CannotExecute:  # whatever is wrong is met again here, where it is logged
                self._done[key] = waiting.instead("here")
            except (Lost, CancelledError):
                waiting.losses += 1
                if waiting.losses < _LOSSES:
                    self._waiting[key] = waiting
                else:
                    self._done[key] = waiting.instead("here")

    def _take_note(self, key: str, waiting: _Waiting[T], found: T) -> None:
        """Of an answer: it is searched on, if there is more to find."""
        if waiting.first is not None:
            self._done[key] = waiting.task.better(waiting.first, found)
            return
        deeper = waiting.task.deeper(found) if self._rounds else None
        if deeper is None or deeper[1] < WORTH or waiting.gain_us <= 0:
            self._done[key] = found
            return
        task, left = deeper
        gain_us = left * waiting.gain_us
        self._waiting[key] = replace(waiting, task=task, gain_us=gain_us, effort=1.0, losses=0, first=found)


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
    units = Together[Solved](executor, executor.workers, time, rounds=True)
    try:
        yield units
    finally:
        units.stop()
