"""A search unit as a piece of work for another process of this machine: solved there, tests included."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf

from mugraph.events import Event, UnitResult
from mugraph.ir.region import SearchUnit
from mugraph.options import Bounds
from mugraph.protocol.settings import CompareWith
from mugraph.solve.ending import Ending
from mugraph.solve.search_unit import solve
from mugraph.solve.telling import Place
from mugraph.solve.tools import Tools
from mugraph.targets import Target
from mugraph.verification.float_test import FloatTester


@dataclass(frozen=True)
class Solved:
    """The result with the events on the way to it, and where the seconds went. shortened: with all that were asked for
    it may be another, so it is not for other runs"""

    result: UnitResult
    events: tuple[Event, ...]
    spent_s: Mapping[str, float]
    shortened: bool = False


@dataclass(frozen=True)
class UnitTask:
    """Where nothing is measured. smaller, most_us: as search_unit.solve has it. shortened: it has fewer seconds than
    were asked for. run_number: of the run, within which what is found of one unit serves others. stops_at: by
    time.monotonic, when it is given up"""

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

    def within(self, left_s: float, stops_at: float = inf) -> UnitTask:
        """Begun when its search may take so many seconds. stops_at: as Ending has it"""
        bounds = self.bounds.within(left_s)
        return replace(self, bounds=bounds, shortened=bounds != self.bounds, stops_at=stops_at)

    def run(self) -> Solved:
        tools = _tools(self.target, self.compare_with)
        if tools.run_number != self.run_number:
            tools.begin_run()
            tools.run_number = self.run_number
        tools.lap()
        ending = Ending(self.stops_at)
        steps = solve(
            self.unit, self.place, tools, self.bounds, smaller=self.smaller, most_us=self.most_us, ending=ending
        )
        events: list[Event] = []
        while True:
            try:
                events.append(next(steps))
            except StopIteration as end:
                shortened = (self.shortened or ending.is_near) and end.value.search.out_of_time
                return Solved(end.value, tuple(events), tools.lap(), shortened)


@cache
def _tools(target: Target, compare_with: CompareWith) -> Tools:
    """Of all tasks of a process: the tester's child imports PyTorch for seconds, and units are alike."""
    tester = FloatTester()
    atexit.register(tester.close)
    return Tools(target, tester, compare_with=compare_with)
