"""One region's way through the rooms: its search units solved, a plan made of them, the plan timed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mugraph.events import Event, RegionResult, SearchReport, Timing, UnitResult
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import Scope
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.ir.transforms.renaming import Renaming, canonical
from mugraph.log import note
from mugraph.memory.units import NotRight, recall, remember
from mugraph.options import Options
from mugraph.plans.kernel_graph import kernel_graph, with_own_names
from mugraph.plans.names import kernel_name, plan_name
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.sizes.search_unit import unit_at
from mugraph.sizes.timing import first_sizes, spans_of
from mugraph.solve.ranking import Place
from mugraph.solve.search_unit import Tools, solve
from mugraph.solve.timing import RegionTimer, with_sizes
from mugraph.store import Store
from mugraph.store.keys import region_key
from mugraph.tune.device import Device
from mugraph.units.part_views import with_views
from mugraph.units.ranged import ranged_units
from mugraph.units.search_units import is_divisible

CUTS = 4
"""Ways to cut a region that are tried, where units have no kernel."""


@dataclass
class RegionJob:
    """names: taken in the kernel module so far. path: of the user's file. lost: why units had no kernel, without which
    the region was cut again"""

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

    @property
    def _timer(self) -> RegionTimer:
        budget_s = self.options.budget_s
        return RegionTimer(self.number, self.device, self.tools, self.store, self.path, budget_s, self.cancelled)

    def result(self) -> Generator[Event, None, RegionResult]:
        region = self.region
        if region.status is not None:
            return RegionResult(region, region.status, region.reason)
        try:
            return (yield from self._searched())
        except Rejected as error:
            return RegionResult(region, "unsupported", str(error))
        except Exception as error:  # one region's trouble must not cost the others their answer
            where = note(error, f"region {region.function} of {self.path}")
            return RegionResult(region, "failed", f"an internal error ({type(error).__name__}); details are in {where}")

    def _searched(self) -> Generator[Event, None, RegionResult]:
        solved, results, report = yield from self._cut_and_solved()
        region = self.region
        if not results:
            reason = "nothing in it is worth a kernel of its own"
            _, reasons = ranged_units(region)
            said = "; ".join(dict.fromkeys([*reasons, *self.lost]))
            return RegionResult(region, "unsupported", said or reason, search=report)
        name = self.names.unique(plan_name(region.function))
        steps: list[KernelStep | PlainCalls] = []
        waiting = iter(results)
        for unit in solved:
            found = next(waiting) if isinstance(unit, SearchUnit) else None
            if isinstance(unit, SearchUnit) and found is not None and found.solution is not None and _is_used(found):
                steps += [PlainCalls(unit.views)] if unit.views else []
                steps.append(KernelStep(unit, found.solution.kernel, found.solution.verdict, found.solution.then))
            else:
                steps.append(PlainCalls(unit.calls))
        merged = _merged(steps)
        sources = {r.solution.kernel.name: r.solution.source for r in results if r.solution is not None}
        if not any(isinstance(step, KernelStep) for step in merged):
            return self._without_gain(name, solved, results, sources, report)
        plan = RegionPlan(name, region, merged, kernel_graph(name, region, merged))
        timing, reason = yield from self._timer.timed(plan, sources, results)
        status = "improved" if (timing.speedup or 0) > 1 and reason is None else "no-gain"
        if status == "improved" and timing.sizes:
            plan = with_sizes(plan, spans_of(timing.sizes))
        if status == "no-gain" and reason is None:
            at = f" at {region.dynamic.range.name} = {_listed(timing)}" if region.dynamic is not None else ""
            reason = f"the kernel is not faster than PyTorch here{at}, beyond what measuring can tell"
        return RegionResult(region, status, reason, plan, sources, tuple(results), timing, report)

    def _cut_and_solved(self) -> Generator[Event, None, tuple[list[Part], list[UnitResult], SearchReport]]:
        """The region's units, the result of each search unit, and what all the searching took. Where no kernel is
        found for a unit with several products, the region is cut again without it."""
        refused: list[frozenset[int]] = []
        named: dict[str, str] = {}
        reports: list[SearchReport] = []
        while True:
            cut = with_own_names(ranged_units(self.region, refused)[0])
            self.region = with_views(self.region, cut)
            solved, results = yield from self._all_solved(cut, named, reports)
            failed = [found.unit for found in results if found.solution is None and is_divisible(found.unit)]
            self.lost += [found.reason for found in results if found.solution is None and found.reason is not None]
            refused += [frozenset(value for call in unit.calls for value in call.outputs) for unit in failed]
            if not failed or self.cancelled() or len(refused) >= CUTS:
                return solved, results, sum(reports[1:], reports[0]) if reports else SearchReport()

    def _all_solved(
        self, cut: Sequence[Part], named: dict[str, str], reports: list[SearchReport]
    ) -> Generator[Event, None, tuple[list[Part], list[UnitResult]]]:
        """named: kernels, by the name they wanted. reports: each search adds its own."""
        function, waiting = self.region.function, list(cut)
        results: list[UnitResult] = []
        solved: list[Part] = []
        number = 0
        while waiting:
            unit = waiting.pop(0)
            if isinstance(unit, PlainCalls):
                solved.append(unit)
                continue
            count = number + sum(isinstance(other, SearchUnit) for other in (unit, *waiting, *unit.apart))
            wanted = kernel_name(function, number + 1 if count > 1 else None)
            kernel = named[wanted] = named.get(wanted) or self.names.unique(wanted)
            found = yield from self._solved(unit, Place(self.number, number, count, function, kernel))
            reports.append(found.search)
            number += 1
            if unit.apart and not _is_used(found):  # nothing is gained together; perhaps by one of them
                waiting = [*unit.apart, *waiting]
                continue
            results.append(found)
            solved.append(unit)
        return solved, results

    def _solved(self, unit: SearchUnit, place: Place) -> Generator[Event, None, UnitResult]:
        """As a unit like it was in this run, from the store, or solved and stored."""
        measuring = self.tools.measurer is not None
        size = self.region.dynamic.range if self.region.dynamic is not None else None
        smaller = [unit_at(unit, self.region, at) for at in first_sizes(size)[1:]] if size is not None else []
        program, names = canonical(unit.program)
        key = region_key(
            program,
            self.tools.target,
            device=self.device.name if measuring else "",
            driver=(self.device.driver or "") if measuring else "",
            space=f"{self.options.bounds}, {size}",
        )
        if key in self.tools.solved:
            known = recall(self.tools.solved[key], unit, place.name, self.tools.target, names, again=False)
            if known is not None:  # it has cost nothing here
                return replace(known, from_store=False, search=replace(known.search, total_s=0.0))
        known = self._recalled(key, unit, place, names)
        if known is not None:
            self.tools.solved[key] = remember(known, names)
            return known
        found = yield from solve(
            unit,
            place,
            self.tools,
            self.options.bounds,
            self.cancelled,
            smaller=smaller,
        )
        if not self.cancelled():
            self.tools.solved[key] = remember(found, names)
            if self.store is not None:
                self.store.put(key, self.tools.solved[key])
        return found

    def _recalled(self, key: str, unit: SearchUnit, place: Place, names: Renaming) -> UnitResult | None:
        """From the store, verified again; None where there is nothing, or nothing that is right."""
        document = self.store.get(key) if self.store is not None else None
        if document is None or self.store is None:
            return None
        try:
            return recall(document, unit, place.name, self.tools.target, names)
        except NotRight as error:
            note(error, f"what is stored of {place.name}, a kernel for {place.function} of {self.path}")
            self.store.notice(f"What was stored of {place.name} is not used, and searched for again: {error}.")
            return None

    def _without_gain(
        self,
        name: str,
        units: Sequence[SearchUnit | PlainCalls],
        results: Sequence[UnitResult],
        sources: dict[str, KernelSource],
        report: SearchReport,
    ) -> RegionResult:
        """No kernel is used. What was found, if anything, is still shown."""
        region = self.region
        solved = {id(r.unit): r.solution for r in results if r.solution is not None}
        if not solved:
            reasons = list(dict.fromkeys(r.reason for r in results if r.reason))
            return RegionResult(region, "no-gain", "; ".join(reasons) or None, units=tuple(results), search=report)
        steps: list[KernelStep | PlainCalls] = []
        for unit in units:
            solution = solved.get(id(unit)) if isinstance(unit, SearchUnit) else None
            if isinstance(unit, SearchUnit) and solution is not None:
                steps += [PlainCalls(unit.views)] if unit.views else []
                steps.append(KernelStep(unit, solution.kernel, solution.verdict, solution.then))
            else:
                steps.append(PlainCalls(unit.calls))
        merged = _merged(steps)
        plan = RegionPlan(name, region, merged, kernel_graph(name, region, merged))
        timing = self._timer.estimated(region, results, use_all=True)
        reason = "the kernel found is not expected to be faster than PyTorch's own"
        return RegionResult(region, "no-gain", reason, plan, sources, tuple(results), timing, report)


def _listed(timing: Timing) -> str:
    """The sizes it was taken at: "1, 8 or 64"."""
    *others, last = [str(row.size) for row in timing.sizes]
    return f"{', '.join(others)} or {last}" if others else last


def _is_used(found: UnitResult) -> bool:
    return found.solution is not None and found.solution.pays


def _merged(steps: Sequence[KernelStep | PlainCalls]) -> tuple[KernelStep | PlainCalls, ...]:
    """Neighbouring plain units as one."""
    merged: list[KernelStep | PlainCalls] = []
    for step in steps:
        last = merged[-1] if merged else None
        if isinstance(step, PlainCalls) and isinstance(last, PlainCalls):
            merged[-1] = PlainCalls((*last.calls, *step.calls))
        else:
            merged.append(step)
    return tuple(merged)
