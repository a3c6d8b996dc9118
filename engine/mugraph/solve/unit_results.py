"""The result of a search unit: recalled, solved by another process beside others, or solved here."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace

from mugraph.events import Event, Searching, SearchReport, UnitResult
from mugraph.ir.region import Region, SearchUnit
from mugraph.ir.transforms.renaming import Renaming
from mugraph.options import Options
from mugraph.search.direct import is_direct
from mugraph.sizes.search_unit import at_other_sizes
from mugraph.solve.ending import NO_END, UNTESTED, Ending
from mugraph.solve.lowering import kept, lowering_of, with_lowering
from mugraph.solve.pytorch import compared, library_us, possible_gain_us
from mugraph.solve.recalling import Memory
from mugraph.solve.search_unit import solve
from mugraph.solve.telling import Place
from mugraph.solve.timing import RegionTimer
from mugraph.solve.together import DIRECT, Units
from mugraph.solve.tools import Tools
from mugraph.solve.unit_task import Solved, UnitTask
from mugraph.verification.lowering.check import mark_of


@dataclass(frozen=True)
class UnitResults:
    """Of the units of one region. number: of the region. together: solves units side by side. calls: that the recorded
    run makes of the region; 1 where there is none

    `region` is the region as it is cut. `most_us` is what a kernel has to be faster than, besides PyTorch."""

    number: int
    tools: Tools
    options: Options
    memory: Memory
    timer: RegionTimer
    cancelled: Callable[[], bool]
    together: Units | None
    calls: int = 1
    _firsts: dict[str, Solved] = field(default_factory=dict[str, Solved])

    def begin(self, unit: SearchUnit, place: Place, region: Region, most_us: float, *, later: bool = False) -> None:
        """Have it solved beside others, if it is not known. A copy is soon found, and makes no two searches of one.
        later: after units of which it is not said"""
        key, _ = self._key(unit, region)
        if self.together is None or unit.program.is_copy or self.memory.has(key):
            return
        tools, smaller = self.tools, tuple(at_other_sizes(unit, region))
        task = UnitTask(unit, place, self.options.bounds, tools.target, tools.compare_with, smaller, most_us)
        task = replace(task, run_number=tools.run_number)
        effort = DIRECT if is_direct(unit.program) else 1.0
        gain_us = possible_gain_us(unit, tools.target, tools.compare_with)
        self.together.add(key, task, gain_us, effort, times=region.times * self.calls, later=later)

    def first(
        self, unit: SearchUnit, place: Place, region: Region, most_us: float
    ) -> Generator[Event, None, UnitResult]:
        """What others find of it in a short while, not to be kept: `of` has it again, or better. A kernel may have
        another name; without a solution, and not searched, where it is known already or nobody works on it."""
        assert self.together is not None
        key, _ = self._key(unit, region)
        answer = yield from self.together.first(key, self.number, self.cancelled)
        if not isinstance(answer, Solved):
            return _late(unit, place, None, "not searched yet")
        if key not in self._firsts:
            self._firsts[key] = answer
            yield from answer.events
            self.tools.spent.add(answer.spent_s)
        return self._priced(replace(answer.result, unit=unit), place, most_us)

    def of(self, unit: SearchUnit, place: Place, region: Region, most_us: float) -> Generator[Event, None, UnitResult]:
        """With a kernel only where the program is what the unit's calls compute. What is recalled was found for the
        same program, of which other calls may have been the origin."""
        smaller = [*at_other_sizes(unit, region)]
        found = yield from self._recalled_or_solved(unit, place, region, smaller, most_us)
        solution = found.solution
        if found.lowering is not None:
            kept(mark_of(unit, smaller), found.lowering, self.tools, self.memory.store)
        if found.lowering is not None or solution is None or not solution.tested:
            return found
        ending = self._ending()
        with self.tools.on("verification"), self.tools.file_time.counting(), self.tools.tester.until(ending.left_s):
            lowering = lowering_of(unit, smaller, place, self.tools, self.memory.store)
        if lowering.passed is None and ending.is_over:
            return replace(found, solution=replace(solution, tested=False), reason=UNTESTED, late=True)
        return with_lowering(found, lowering)

    def _recalled_or_solved(
        self, unit: SearchUnit, place: Place, region: Region, smaller: list[SearchUnit], most_us: float
    ) -> Generator[Event, None, UnitResult]:
        """Recalled, or solved and kept."""
        memory = self.memory
        key, names = self._key(unit, region)
        with self.tools.on("verification"):
            known = memory.recalled(unit, place, key, names)
        if known is not None and _is_tested(known := self._priced(known, place, most_us)):
            return known
        if self.together is not None:
            if self.tools.measurer is not None:
                self.timer.peers.begin()
            yield Searching(place.region, place.unit, place.units, place.function)
            answer = yield from self.together.answer(key, self.number, self.cancelled)
            if isinstance(answer, Solved):
                if answer is not self._firsts.get(key):
                    yield from answer.events
                    self.tools.spent.add(answer.spent_s)
                solved = answer.result
                if not _is_mislowered(solved):
                    memory.keep(solved, key, lasting=not answer.shortened)
                if solved.lowering is not None:  # of the same calls, perhaps under other names and of another region
                    mark = mark_of(solved.unit, answer.smaller)
                    kept(mark, solved.lowering, self.tools, self.memory.store)
                if answer.result.unit == unit and answer.result.kernel == place.name:
                    return replace(answer.result, unit=unit)
                known = memory.recalled(unit, place, key, names)  # under another name
                if known is not None and _is_tested(known := self._priced(known, place, most_us)):
                    return replace(known, search=answer.result.search)
            if answer == "given up":
                return _late(unit, place, known, self.tools.file_time.given_up_words)
        if self.tools.file_time.is_over:
            return _late(unit, place, known, self.tools.file_time.words)
        self.timer.peers.begin()
        bounds, ending = self.options.bounds.within(self.tools.file_time.left_s), self._ending()
        found = yield from solve(
            unit, place, self.tools, bounds, self.cancelled, smaller=smaller, most_us=most_us, ending=ending
        )
        if not self.cancelled() and not _is_mislowered(found):
            shortened = bounds != self.options.bounds or ending.is_near
            memory.keep(found, key, lasting=not (shortened and found.search.out_of_time))
        return found

    def _ending(self) -> Ending:
        """None is near where something is measured: that does not count, so it is not known when the time is over."""
        return Ending(self.tools.file_time.stops_at) if self.tools.measurer is None else NO_END

    def _key(self, unit: SearchUnit, region: Region) -> tuple[str, Renaming]:
        ranges = region.dynamic.words if region.dynamic is not None else None
        return self.memory.key(unit, self.options.bounds, ranges)

    def _priced(self, known: UnitResult, place: Place, most_us: float) -> UnitResult:
        """With what PyTorch would take for the calls here: one program may have been written in several ways."""
        if known.solution is None:
            return known
        library = library_us(known.unit, self.tools.target, compared(place, self.tools.compare_with))
        return replace(known, solution=replace(known.solution, library_us=min(library, most_us)))


def _late(unit: SearchUnit, place: Place, known: UnitResult | None, why: str) -> UnitResult:
    """Where there is no time for it. known: of the same program, with a kernel that was not tested, if there is one"""
    if known is not None and known.solution is not None:
        return replace(known, reason=UNTESTED, late=True)
    report = SearchReport(complete=False, ended_by="time")
    return UnitResult(unit, None, report, why, kernel=place.name, searched=False)


def _is_mislowered(found: UnitResult) -> bool:
    """Then it says nothing of other units whose program is the same."""
    return found.lowering is not None and found.lowering.passed is False


def _is_tested(found: UnitResult) -> bool:
    """False for a kernel that did not pay where it was found, and would pay here."""
    solution = found.solution
    if solution is None or solution.tested or not solution.is_expected_to_pay:
        return True
    return solution.measured_us is not None  # it did not, and was so slow that it was not tested
