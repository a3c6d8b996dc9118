"""The search units of a file where there is a device: searched side by side in processes of their own, and measured
here, one after the other, within the file's time.

What is expected to gain most is measured first, whichever region it is of; what is the same is measured once. A unit
gets its share of the seconds that are left: with many of them a few kernels of each are measured, with one of them as
many as were asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import inf, sqrt

from mugraph.events import Event, UnitResult, Working
from mugraph.solve.ending import Ending
from mugraph.solve.search_unit import Searched, ahead, finished, untested
from mugraph.solve.together import Answer, Together
from mugraph.solve.tools import Tools
from mugraph.solve.unit_task import Found, SearchTask, Solved, UnitTask

_log = logging.getLogger("mugraph.solve")

LEAST_S = 2.0
"""That the kernels of a unit are measured for, if any are."""
_HOPE = 0.05
"""Of what a unit may gain at most, what counts where its kernels are expected to gain less: estimates err."""


@dataclass
class _Unit:
    """gain_us: at most, of all units that are the same. count: how often they are executed"""

    task: UnitTask
    gain_us: float = 0.0
    count: int = 0


class InTurn:
    """searches: side by side"""

    def __init__(self, searches: Together[Found], tools: Tools) -> None:
        self._searches, self._tools = searches, tools
        self._waiting: dict[str, _Unit] = {}
        self._done: dict[str, Answer] = {}

    @property
    def answers_first(self) -> bool:
        """None: what is found has to be measured."""
        return False

    def first(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, Answer]:
        yield from ()
        return "here"

    def work(self, wait_s: float = 0.0) -> None:
        self._searches.work(wait_s)

    def deepen(self) -> None:
        """Nothing: each is searched once."""

    def add(
        self, key: str, task: UnitTask, gain_us: float, effort: float = 1.0, *, times: int = 1, later: bool = False
    ) -> None:
        if key in self._done:
            return
        self._searches.add(key, SearchTask(task), gain_us, effort, times=times, later=later)
        unit = self._waiting.setdefault(key, _Unit(task))
        unit.gain_us += times * gain_us
        unit.count += times

    def answer(self, key: str, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, Answer]:
        """Measures what gains more before the unit itself."""
        if key in self._waiting and not self._searches.is_worth_it:
            self._searches.forget(key)
            del self._waiting[key]
        told = -1
        with self._tools.file_time.counting():
            while key in self._waiting:
                done, every = self._searches.counts
                if done != told:
                    told = done
                    yield Working(region, f"searching {every} units, {self._searches.workers} at a time", done, every)
                if cancelled():
                    self._waiting.clear()
                    self._searches.stop()
                    return "here"
                ready = [one for one in self._waiting if self._searches.is_done(one)]
                self._searches.work(0.0) if ready else self._searches.work()
                if ready:
                    best = max(ready, key=self._gain_us)
                    self._done[best] = yield from self._measured(best, cancelled)
        return self._done.pop(key, "here")

    def _gain_us(self, key: str) -> float:
        """Expected; of what is not searched yet, at most. Infinite where there is nothing to measure."""
        unit, found = self._waiting[key], self._searches.peek(key)
        most = max(unit.gain_us, 0.0)
        if found is None:
            return most
        if not isinstance(found, Found) or isinstance(found.found, UnitResult):
            return inf
        return max(unit.count * found.found.expected_gain_us, _HOPE * most)

    def _share_s(self, key: str) -> float:
        """Of the seconds that are left. By roots: what gains most must not take all."""
        weights = {one: sqrt(min(self._gain_us(one), 1e12)) for one in self._waiting if self._gain_us(one) < inf}
        every = sum(weights.values())
        part = weights[key] / every if every else 1 / len(weights)
        return max(LEAST_S, part * self._tools.file_time.left_s)

    def _measured(self, key: str, cancelled: Callable[[], bool]) -> Generator[Event, None, Answer]:
        found = self._searches.peek(key)
        searched = found.found if isinstance(found, Found) else None
        share_s = self._share_s(key) if searched is not None and not isinstance(searched, UnitResult) else 0.0
        unit, taken = self._waiting.pop(key), self._searches.take(key)
        if not isinstance(taken, Found):
            return taken
        yield from taken.events
        self._tools.spent.add(taken.spent_s)
        task = unit.task
        if isinstance(taken.found, UnitResult):
            return Solved(taken.found, (), {}, taken.shortened, task.smaller)
        if self._tools.file_time.is_over:
            return Solved(untested(task.unit, taken.found), (), {}, shortened=True)
        own_clock = self._tools.file_time.own_clock
        ending = Ending(own_clock() + share_s, own_clock)
        try:
            self._compile_ahead(unit.task, taken.found, share_s)
            result = yield from finished(
                task.unit, taken.found, self._tools, task.bounds, cancelled, smaller=task.smaller, ending=ending
            )
        except Exception as error:  # met again where the unit's own region asks, and said of that one
            _log.debug("a search unit is solved where it is asked for: %s", error)
            return "here"
        return Solved(result, (), {}, taken.shortened or ending.is_over, task.smaller)

    def _compile_ahead(self, task: UnitTask, found: Searched, share_s: float) -> None:
        """The kernels of this unit, and after them a few of the one that is measured next: meanwhile the device tests
        this one's."""
        ahead(task.unit, found, self._tools, task.bounds, share_s, waits=False)
        ready = {key: self._searches.peek(key) for key in self._waiting}
        others = {key: one.found for key, one in ready.items() if isinstance(one, Found)}
        measured = {key: one for key, one in others.items() if isinstance(one, Searched)}
        if measured:
            key = max(measured, key=self._gain_us)
            task = self._waiting[key].task
            ahead(task.unit, measured[key], self._tools, task.bounds, LEAST_S, waits=False)
