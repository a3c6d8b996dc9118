"""The way of one region, from trace to a timed plan, as a list of steps.

cut           into search units                                       room:  units
solve each    unit_results.py                                         rooms: memory, store
planning      a plan of their kernels                                 room:  plans
overlapping   its kernels, each after the other, early or side by side rooms: codegen, tune
timing        the plan beside PyTorch                                 rooms: edit, tune
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from mugraph.codegen.over_inputs import over_inputs
from mugraph.events import Event, RegionResult, SearchReport, UnitResult
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import Scope
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.log import note
from mugraph.options import Options
from mugraph.plans.names import kernel_name, plan_name
from mugraph.plans.plan import RegionPlan
from mugraph.solve.choosing import Way, fastest_measured, near_ones
from mugraph.solve.concluding import not_paying, of_plan, without_kernels, without_units
from mugraph.solve.cuts import Cut, Cuts
from mugraph.solve.digits import as_on_the_device
from mugraph.solve.divisions import Division, fastest, to_leave
from mugraph.solve.in_layouts import InLayouts
from mugraph.solve.overlapping import overlapping
from mugraph.solve.planning import planned
from mugraph.solve.programs import ProgramText
from mugraph.solve.recalling import Memory
from mugraph.solve.telling import Place
from mugraph.solve.timing import RegionTimer
from mugraph.solve.together import Units
from mugraph.solve.tools import Tools
from mugraph.solve.unit_results import UnitResults
from mugraph.store import Store
from mugraph.tune.device import Device
from mugraph.units.layouts import plain_calls_of, usual_and_turned
from mugraph.units.search_units import is_divisible

_log = logging.getLogger("mugraph.solve")

CUTS = 4
"""Ways to cut a region that are tried, where units have no kernel."""
_CLEAR = 0.99
"""Of a plan's estimate: what is below it is less."""


@dataclass
class RegionJob:
    """names: taken in the kernel module so far. path: of the user's file. lost: why units had no kernel, without which
    the region was cut again. program: the file's text, where it is known. together: solves units side by side. calls:
    that the recorded run makes of the region; 1 where there is none"""

    number: int
    region: Region
    names: Scope
    device: Device
    tools: Tools
    options: Options
    store: Store | None
    cancelled: Callable[[], bool]
    path: Path
    lost: list[str] = field(default_factory=list[str])
    program: ProgramText | None = None
    together: Units | None = None
    calls: int = 1
    _begun: list[Sequence[Part]] = field(default_factory=list[Sequence[Part]])
    _early_s: Mapping[str, float] = field(default_factory=dict[str, float])
    _cut: Cut | None = None
    _divisions: list[Division] = field(default_factory=list[Division])
    _named: dict[str, str] = field(default_factory=dict[str, str])
    _plan_name: str = ""
    _knows_digits: bool = False

    def __post_init__(self) -> None:
        self.cuts = Cuts(self.region, self.tools.target, self.tools.measurer is not None)
        self.name = plan_name(self.region.function)
        self.timer = RegionTimer(
            self.number,
            self.device,
            self.tools,
            self.store,
            self.path,
            self.options.budget_s,
            self.cancelled,
            self.program,
        )
        self._units = UnitResults(
            self.number,
            self.tools,
            self.options,
            Memory(self.tools, self.device, self.store, self.path),
            self.timer,
            self.cancelled,
            self.together,
            self.calls,
        )

    def begin(self) -> None:
        """Have the region's units solved beside those of others. Raises nothing: what is wrong is met again, and said,
        when its result is asked for."""
        if self.together is None or self.region.status is not None:
            return
        try:
            self._ask_how_it_rounds()
            self.cuts.turned = next(iter(self.cuts.layouts()))
            self._cut = self.cuts.of()
            self._begin(self.cuts.first(self._cut)[1])
        except Exception as error:  # as in `result`, where it counts
            _log.debug("a region is not begun early: %s", error)

    def _ask_how_it_rounds(self) -> None:
        """Before anything is cut, as it decides what kernels may round."""
        if not self._knows_digits:
            self._knows_digits = True
            self.cuts = replace(self.cuts, recorded=as_on_the_device(self.region, self.tools, self.device, self.store))

    def first_answers(self) -> Generator[Event, None, None]:
        """Those of the first cut's units. Then the units of the cut that has most in them are begun, after those of all
        regions' first cuts. Raises nothing, as `begin`."""
        if self._cut is None:
            return
        first = self.cuts.first(self._cut)
        yield from self._divided_at_first(first)
        if first[1] != self._cut[1]:
            self._begin(self._cut[1], later=True)

    def further_answers(self) -> Generator[Event, None, None]:
        """Those of that cut's units, if it is another. Raises nothing, as `begin`."""
        if self._cut is not None and self.cuts.first(self._cut)[1] != self._cut[1]:
            yield from self._divided_at_first(self._cut)

    def _divided_at_first(self, cut: Cut) -> Generator[Event, None, None]:
        """By first answers, which say what other ways to divide it take."""
        recorded, self.region = self.region, cut[0]
        self.tools.lap()
        try:
            with self.tools.on("other"):
                parts, results = yield from self._all_solved(cut[1], [], at_first=True)
            self._divisions.append(Division(cut[0], parts, results))
        except Exception as error:  # as in `result`, where it counts
            _log.debug("a region has no first answers: %s", error)
        self.region = recorded
        lap = self.tools.lap()
        self._early_s = {what: self._early_s.get(what, 0.0) + lap.get(what, 0.0) for what in {**self._early_s, **lap}}

    def _begin(self, parts: Sequence[Part], *, later: bool = False) -> None:
        """Have the units of a cut solved beside those of others, once."""
        if self.together is None or any(parts is one for one in self._begun):
            return
        self._begun.append(parts)
        units = [part for part in parts if isinstance(part, SearchUnit)]
        turned = _has_turned(self.region, parts)
        for number, unit in enumerate(units):
            wanted = kernel_name(self.name, number + 1 if len(units) > 1 else None)
            place = Place(self.number, number, len(units), self.region.function, wanted, turned)
            self._units.begin(unit, place, self.region, self._most_us(unit), later=later)

    def result(self) -> Generator[Event, None, RegionResult]:
        region = self.region
        if region.status is not None:
            return RegionResult(region, region.status, region.reason)
        self.tools.lap()
        try:
            with self.tools.on("other"):
                found = yield from self._searched()
            self.tools.spent.add(self._early_s)
            return replace(found, spent_s=self.tools.lap())
        except Rejected as error:
            return RegionResult(region, "unsupported", str(error))
        except Exception as error:  # one region's trouble must not cost the others their answer
            where = note(error, f"region {region.function} of {self.path}")
            return RegionResult(region, "failed", f"an internal error ({type(error).__name__}); details are in {where}")

    def _searched(self) -> Generator[Event, None, RegionResult]:
        self._ask_how_it_rounds()
        layouts = InLayouts(self.cuts, self.tools, self.cancelled, self._searched_so)
        return (yield from layouts.fastest())

    def _searched_so(self, *, at_first: bool = False) -> Generator[Event, None, RegionResult]:
        """at_first: no further than the first cut"""
        parts, results, report = yield from self._cut_and_solved(at_first=at_first)
        region = self.region
        if not results:
            return without_units(region, self.lost, self.tools.target, report)
        name = self._name_of_plan()
        solutions = {id(found.unit): found.solution for found in results if found.solution is not None}
        sources = {solution.kernel.name: solution.source for solution in solutions.values()}
        used = {unit: solution for unit, solution in solutions.items() if solution.pays}
        timer = self.timer
        plan = planned(name, region, parts, used, self.options.left_out)
        if plan is not None:
            plan, sources = yield from overlapping(plan, sources, timer, early=self.options.overlap)
            plan, sources = over_inputs(plan, sources)
            timing, reason = yield from timer.timed(plan, sources, results)
            return of_plan(plan, timing, reason, sources, results, report)
        plan = planned(
            name, region, parts, solutions, self.options.left_out
        )  # what was found, if anything, is still shown
        if plan is None:
            return without_kernels(region, results, report)
        plan, sources = over_inputs(plan, sources)
        timing = timer.alone(results) or timer.estimated(plan, results, use_all=True)
        return not_paying(plan, timing, sources, results, report)

    def _cut_and_solved(
        self, *, at_first: bool
    ) -> Generator[Event, None, tuple[list[Part], list[UnitResult], SearchReport]]:
        """The region's parts, the result of each search unit, and what all the searching took. Where no kernel is
        found for a unit with several products, the region is cut again without it."""
        refused: list[frozenset[int]] = []
        reports: list[SearchReport] = []
        self._divisions = []
        early, self._cut = self._cut, None
        whole = early or self.cuts.of()
        first = self.cuts.first(whole)
        self.timer.peers.expect(whole[0], [part for part in whole[1] if isinstance(part, SearchUnit)])
        if early is None:
            self._begin(first[1])
        if first[1] != whole[1]:
            yield from self._divided(first, reports)
            if at_first:
                return (yield from self._chosen(reports))
            self._begin(whole[1])
        while True:
            results = yield from self._divided(whole, reports)
            lacking = [found for found in results if found.solution is None and found.searched]
            failed = [found.unit for found in lacking if is_divisible(found.unit)]
            self.lost += [found.reason for found in lacking if found.reason is not None]
            refused += [frozenset(value for call in unit.calls for value in call.outputs) for unit in failed]
            settled = not failed or self.tools.file_time.is_over
            if settled or self.cancelled() or len(refused) >= CUTS:
                yield from self._mixed(whole, refused, reports)
                return (yield from self._chosen(reports))
            whole = self.cuts.of(refused)
            self._begin(whole[1])

    def _chosen(
        self, reports: Sequence[SearchReport]
    ) -> Generator[Event, None, tuple[list[Part], list[UnitResult], SearchReport]]:
        """Of the ways to divide the region that were solved."""
        best = yield from self._fastest()
        self.region = best.region
        return best.parts, best.results, sum(reports[1:], reports[0]) if reports else SearchReport()

    def _mixed(
        self, whole: Cut, refused: Sequence[frozenset[int]], reports: list[SearchReport]
    ) -> Generator[Event, None, None]:
        """One more way to divide the region: with calls left to PyTorch where that is faster, and in kernels where
        those are. Most of its units are known by then."""
        apart, together = self._divisions[0], self._divisions[-1]
        if apart is together or self.tools.file_time.is_over or self.cancelled():
            return
        leave = to_leave(self.cuts.left(self.cuts.of()), apart, together, self.tools.target)
        if leave:
            cut = self.cuts.of([*refused, *leave])
            if cut[1] not in (whole[1], tuple(apart.parts)):
                self._begin(cut[1])
                yield from self._divided(cut, reports)

    def _fastest(self) -> Generator[Event, None, Division]:
        """By estimate; where several are near one another, by what their plans take, and with a GPU as measured."""
        best, near = fastest(self._divisions, self.tools.target), near_ones(self._divisions, self.tools.target)
        if len(near) > 1 and self.cuts.recorded.dynamic is None:
            best = self._cheapest(near, best)
        is_late = self.tools.file_time.is_over or self.cancelled()
        if self.tools.measurer is None or self.cuts.recorded.dynamic is not None or is_late or len(near) < 2:
            return best
        ways = [Way(one, plan, sources) for one in near for plan, sources in [self._planned(one)] if plan is not None]
        measured = (yield from fastest_measured(ways, self.timer)) if len(ways) > 1 else None
        return measured or best

    def _cheapest(self, near: Sequence[Division], best: Division) -> Division:
        """By the estimates of their plans, where one is clearly less than the best's: only there it is known which
        convolutions are turned, as only those are that a kernel reads."""

        def us(one: Division) -> float:
            plan, _ = self._planned(one)
            return (self.timer.estimated(plan, one.results).optimized_us or inf) if plan is not None else inf

        took = [us(one) for one in near]
        at = min(range(len(near)), key=took.__getitem__)
        return near[at] if took[at] < _CLEAR * us(best) else best

    def _planned(self, division: Division) -> tuple[RegionPlan | None, dict[str, KernelSource]]:
        """What would be written for it: with the kernels that pay."""
        found = [(id(one.unit), one.solution) for one in division.results if one.solution is not None]
        sources = {solution.kernel.name: solution.source for _, solution in found}
        used = {unit: solution for unit, solution in found if solution.pays}
        return planned(self._name_of_plan(), division.region, division.parts, used, self.options.left_out), sources

    def _name_of_plan(self) -> str:
        self._plan_name = self._plan_name or self.names.unique(self.name)
        return self._plan_name

    def _divided(self, cut: Cut, reports: list[SearchReport]) -> Generator[Event, None, list[UnitResult]]:
        """The results of a cut's units; the cut is kept as one way to divide the region."""
        self.region = cut[0]
        parts, results = yield from self._all_solved(cut[1], reports)
        self._divisions.append(Division(cut[0], parts, results))
        return results

    def _most_us(self, unit: SearchUnit) -> float:
        """What its kernel has to be faster than, from other ways to divide the region; else infinite. A way that has
        the unit itself says nothing of it."""
        others = (one for one in self._divisions if not one.has(unit))
        return min((one.us_around(unit, self.tools.target) for one in others), default=inf)

    def _all_solved(
        self, cut: Sequence[Part], reports: list[SearchReport], *, at_first: bool = False
    ) -> Generator[Event, None, tuple[list[Part], list[UnitResult]]]:
        """reports: each search adds its own. at_first: by first answers, which are not kept and give no names"""
        function, waiting, turned = self.region.function, list(cut), _has_turned(self.region, cut)
        results: list[UnitResult] = []
        parts: list[Part] = []
        number = 0
        while waiting:
            part = waiting.pop(0)
            if isinstance(part, PlainCalls):
                parts.append(part)
                continue
            count = number + sum(isinstance(other, SearchUnit) for other in (part, *waiting, *part.apart))
            wanted = kernel_name(self.name, number + 1 if count > 1 else None)
            if not at_first:
                self._named[wanted] = self._named.get(wanted) or self.names.unique(wanted)
            place = Place(self.number, number, count, function, self._named.get(wanted, wanted), turned)
            solved = self._units.first if at_first else self._units.of
            found = yield from solved(part, place, self.region, self._most_us(part))
            reports.append(found.search)
            number += 1
            gains = found.solution is not None and (found.solution.pays or found.late)
            if part.apart and found.searched and not gains:
                waiting = [*part.apart, *waiting]  # nothing is gained together; perhaps by one of them
                self._begin(part.apart, later=at_first)
                continue
            results.append(found)
            parts.append(part)
        return parts, results


def _has_turned(region: Region, parts: Sequence[Part]) -> bool:
    """Does PyTorch run a convolution otherwise than it was recorded?"""
    if region.relaid is not None:
        return True
    return bool(usual_and_turned(region, [call for part in parts for call in plain_calls_of(region, part)])[1])
