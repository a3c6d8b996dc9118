"""A search unit as a piece of work for another process of this machine: solved there, tests included."""

from __future__ import annotations

import atexit
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import TypeVar

from mugraph.events import LEVEL, Event, SearchReport, UnitResult
from mugraph.ir.region import SearchUnit
from mugraph.options import LEAST_S, Bounds
from mugraph.protocol.settings import CompareWith
from mugraph.solve.ending import Ending
from mugraph.solve.lowering import lowering_of
from mugraph.solve.pytorch import possible_gain_us
from mugraph.solve.search_unit import Searched, searched, solve
from mugraph.solve.telling import Place
from mugraph.solve.tools import Tools
from mugraph.targets import Target
from mugraph.verification.float_test import FloatTester

R = TypeVar("R")


@dataclass(frozen=True)
class Solved:
    """The result with the events on the way to it, and where the seconds went. shortened: with all that were asked for
    it may be another, so it is not for other runs. smaller: of the unit that was solved"""

    result: UnitResult
    events: tuple[Event, ...]
    spent_s: Mapping[str, float]
    shortened: bool = False
    smaller: tuple[SearchUnit, ...] = ()


@dataclass(frozen=True)
class Found:
    """As Solved, of a search alone. found: the unit's result where there is nothing to measure"""

    found: Searched | UnitResult
    events: tuple[Event, ...]
    spent_s: Mapping[str, float]
    shortened: bool = False


@dataclass(frozen=True)
class UnitTask:
    """Where nothing is measured. smaller, most_us: as search_unit.solve has it. shortened: it has fewer seconds than
    were asked for. run_number: of the run, within which what is found of one unit serves others. stops_at: by
    time.monotonic, when it is given up. search_s: as Ending has it"""

    unit: SearchUnit
    place: Place
    bounds: Bounds
    target: Target
    compare_with: CompareWith
    smaller: tuple[SearchUnit, ...] = ()
    most_us: float = inf
    shortened: bool = False
    run_number: int = 0
    stops_at: float = inf
    search_s: float = inf

    def within(self, left_s: float, stops_at: float = inf) -> UnitTask:
        """Begun when its search may take so many seconds. stops_at: as Ending has it"""
        bounds = self.bounds.within(left_s)
        return replace(
            self, bounds=bounds, shortened=bounds != self.bounds, stops_at=stops_at, search_s=max(left_s, LEAST_S)
        )

    def deeper(self, first: Solved) -> tuple[UnitTask, float] | None:
        """What is no faster than the first answer is not tested in the second."""
        if not first.shortened:
            return None
        solution = first.result.solution
        if solution is None or not solution.tested or not solution.pays:
            return self, 1.0
        possible = possible_gain_us(self.unit, self.target, self.compare_with)
        left = 1 - (solution.library_us - solution.estimate_us) / possible if possible > 0 else 0.0
        if self.smaller:  # the second may be faster at another size
            return self, left
        return replace(self, most_us=min(self.most_us, LEVEL * solution.estimate_us)), left

    def better(self, first: Solved, second: Solved) -> Solved:
        """What may be offered before what may not; of two, that which is expected to be faster."""
        known, found = first.result.solution, second.result.solution
        if known is None or not known.tested or not known.pays:
            keeps = found is None and known is not None
        else:
            keeps = found is None or not found.tested or found.estimate_us >= known.estimate_us
        if keeps:
            return replace(second, result=replace(first.result, search=second.result.search), events=())
        if known is not None and found is not None:  # which had to be faster than the first
            found = replace(found, library_us=known.library_us)
        return replace(second, result=replace(second.result, solution=found))

    def run(self) -> Solved:
        tools, ending = self._tools(), self._ending()
        events, result = _run(
            solve(self.unit, self.place, tools, self.bounds, smaller=self.smaller, most_us=self.most_us, ending=ending)
        )
        return Solved(result, events, tools.lap(), self._is_shortened(ending, result.search), self.smaller)

    def search(self) -> Found:
        """Without the tests, for a unit that is measured elsewhere. But whether the program is what its calls compute
        is seen here: PyTorch needs no device for it, and it takes as long as to measure some kernels."""
        tools, ending = self._tools(), self._ending()
        steps = searched(
            self.unit,
            self.place,
            tools,
            self.bounds,
            smaller=self.smaller,
            most_us=self.most_us,
            ending=ending,
            measured=True,
        )
        events, found = _run(steps)
        if isinstance(found, Searched):
            with tools.on("verification"), tools.tester.until(ending.left_s):
                found = replace(found, lowering=lowering_of(self.unit, self.smaller, self.place, tools))
        report = found.search if isinstance(found, UnitResult) else found.ranked.report
        return Found(found, events, tools.lap(), self._is_shortened(ending, report))

    def _ending(self) -> Ending:
        return Ending(self.stops_at, search_s=self.search_s)

    def _tools(self) -> Tools:
        tools = _tools(self.target, self.compare_with)
        if tools.run_number != self.run_number:
            tools.begin_run()
            tools.run_number = self.run_number
        tools.lap()
        return tools

    def _is_shortened(self, ending: Ending, report: SearchReport) -> bool:
        return (self.shortened or ending.is_near) and report.out_of_time


@dataclass(frozen=True)
class SearchTask:
    """The search of a unit that is tested and measured by whoever has the device."""

    unit: UnitTask

    def within(self, left_s: float, stops_at: float = inf) -> SearchTask:
        return SearchTask(self.unit.within(left_s, stops_at))

    def deeper(self, first: Found) -> tuple[SearchTask, float] | None:
        """It has all its seconds at once: what is measured once is not measured again."""
        return None

    def better(self, first: Found, second: Found) -> Found:
        return second

    def run(self) -> Found:
        return self.unit.search()


def _run(steps: Generator[Event, None, R]) -> tuple[tuple[Event, ...], R]:
    events: list[Event] = []
    while True:
        try:
            events.append(next(steps))
        except StopIteration as end:
            return tuple(events), end.value


@cache
def _tools(target: Target, compare_with: CompareWith) -> Tools:
    """Of all tasks of a process: the tester's child imports PyTorch for seconds, and units are alike."""
    tester = FloatTester()
    atexit.register(tester.close)
    return Tools(target, tester, compare_with=compare_with)
