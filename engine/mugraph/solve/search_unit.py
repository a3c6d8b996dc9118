"""The way of one search unit, from its tensor program to a verified kernel, as a list of steps.

    one_kernel       search: topologies of one kernel                      rooms: search, executors
    several_kernels  search: kernel graphs of several                      rooms: search, executors
    ranking          schedule, verify: the candidates, best first          rooms: search, verification
    writing          lay out, lower: their kernels in Triton               rooms: optimizer, sizes, codegen
    lowering         run the recorded calls: is the program what they are? room:  verification
    testing          test: the best by estimate that is right, if it pays  rooms: verification, codegen, sizes
    or measuring     test and measure: the fastest that is right           rooms: tune, verification, sizes
    bordering        of a range: others where a size is small, if faster   rooms: sizes, tune, verification
    right            fuse: its thread graphs                               room:  optimizer
    paying           whether it gains at another size of a range           rooms: sizes, tune

Each step takes the values of those before it and returns its own. Steps yield the events that Telling makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from mugraph.events import Event, Solution, UnitResult
from mugraph.ir.region import SearchUnit
from mugraph.options import Bounds
from mugraph.search.topologies.limits import never
from mugraph.sizes.table import SizeTable
from mugraph.solve.bordering import with_borders
from mugraph.solve.ending import NO_END, UNTESTED, Ending
from mugraph.solve.lowering import lowering_of, with_lowering
from mugraph.solve.measuring import fastest_that_is_right
from mugraph.solve.near_memory import is_near_memory
from mugraph.solve.paying import pays_at
from mugraph.solve.pytorch import compared, library_us
from mugraph.solve.ranking import Ranked, ranked_candidates
from mugraph.solve.right import Outcome, Right, proved, solution_of
from mugraph.solve.telling import Place, Telling
from mugraph.solve.testing import FLOAT_TRIED, best_that_is_right, output_names
from mugraph.solve.tools import Tools
from mugraph.solve.waiting import waited
from mugraph.solve.writing import Written, written
from mugraph.tune.tuner import FEW, compiled_ahead, first_of, first_within
from mugraph.tune.tuners.model_then_walk import MEASURED, TRIALS
from mugraph.verification.verdict import Lowering

_BEATEN = 1.25
"""Times what another way to divide the region takes: a kernel that is estimated above is not measured either."""


@dataclass(frozen=True)
class Searched:
    """A search unit between its search and its tests.

    library_us: what a kernel has to be faster than, by estimate
    lowering:   whether its program is what its calls compute; None where that was not looked at yet
    """

    telling: Telling
    ranked: Ranked
    kernels: Written
    library_us: float
    lowering: Lowering | None = None

    @property
    def expected_gain_us(self) -> float:
        """Of the best kernel, by estimate; below 0 where it is expected to be slower."""
        return self.library_us - min(variant.candidate.estimate_us for variant, _ in self.kernels.variants)

    def result(
        self,
        unit: SearchUnit,
        solution: Solution | None,
        reason: str | None,
        rejected: Mapping[str, int],
        *,
        cut_short: bool = False,
    ) -> UnitResult:
        ranked, telling = self.ranked, self.telling
        report = replace(ranked.report, out_of_time=ranked.report.out_of_time or cut_short)
        return UnitResult(
            unit, solution, report, reason, rejected, kernel=telling.place.name, considered=telling.considered
        )


def solve(
    unit: SearchUnit,
    place: Place,
    tools: Tools,
    bounds: Bounds,
    cancelled: Callable[[], bool] = never,
    *,
    smaller: Sequence[SearchUnit] = (),
    most_us: float = inf,
    ending: Ending = NO_END,
) -> Generator[Event, None, UnitResult]:
    """Events, then the result. Never raises for a program that has no good kernel: the result says why.

    smaller: of a size in a range, the unit at others than the largest, where its kernel may pay as well
    most_us: what another way to divide the region takes for the unit, by estimate
    ending:  when it has to be done: a kernel that there was no time to test is shown, and not offered
    """
    measured = tools.measurer is not None
    found = yield from searched(
        unit, place, tools, bounds, cancelled, smaller=smaller, most_us=most_us, ending=ending, measured=measured
    )
    if isinstance(found, UnitResult):
        return found
    return (yield from finished(unit, found, tools, bounds, cancelled, smaller=smaller, ending=ending))


def searched(
    unit: SearchUnit,
    place: Place,
    tools: Tools,
    bounds: Bounds,
    cancelled: Callable[[], bool] = never,
    *,
    smaller: Sequence[SearchUnit] = (),
    most_us: float = inf,
    ending: Ending = NO_END,
    measured: bool = False,
) -> Generator[Event, None, Searched | UnitResult]:
    """Its kernels, to be tested; or its result, where none is to be. Arguments as of `solve`. measured: they will be"""
    tools.begin()
    telling = Telling(place)
    program = unit.program
    library = min(library_us(unit, tools.target, compared(place, tools.compare_with)), most_us)
    with tools.on("search"), tools.file_time.counting():
        # A size of a range, and a device, may show what the estimate at the largest size does not.
        worth_us = library if not measured and not smaller else inf
        ranked = yield from ranked_candidates(program, telling, tools, bounds, cancelled, worth_us, ending)
    found = Searched(telling, ranked, Written(()), library)
    if not ranked.candidates:
        return found.result(unit, None, ranked.reason, {})
    table = SizeTable(program, tools.target, output_names(program))
    most = FLOAT_TRIED if not measured else MEASURED if bounds.trials <= TRIALS else bounds.trials
    with tools.on("code generation"):
        kernels = written(ranked.candidates, table, place.name, most, measured=measured, without=bounds.without)
    found = replace(found, kernels=kernels)
    if not kernels.variants:
        reason = f"no candidate can be written as a kernel: {_most_common(kernels.rejected)}"
        return found.result(unit, None, reason, kernels.rejected)
    if not smaller:
        shown = _untested(kernels, library)
        beaten = shown.estimate_us > _BEATEN * most_us
        if beaten or (not measured and not shown.is_expected_to_pay):  # nor is any other: it is the best
            telling.chosen(kernels.variants[0][0].candidate)
            return found.result(unit, shown, None, kernels.rejected)
    return found


def finished(
    unit: SearchUnit,
    found: Searched,
    tools: Tools,
    bounds: Bounds,
    cancelled: Callable[[], bool] = never,
    *,
    smaller: Sequence[SearchUnit] = (),
    ending: Ending = NO_END,
) -> Generator[Event, None, UnitResult]:
    """Tested, and measured where there is a device. As `solve`; near the ending no further kernel is measured"""
    telling, kernels, library = found.telling, found.kernels, found.library_us
    program, measurer, place = unit.program, tools.measurer, telling.place
    lowering = found.lowering
    if lowering is None:
        left_s = ending.left_s if measurer is None else inf
        with tools.on("verification"), tools.file_time.counting(), tools.tester.until(left_s):
            lowering = lowering_of(unit, smaller, place, tools)
    if lowering.passed is False:
        return replace(found.result(unit, None, lowering.words, kernels.rejected), lowering=lowering)
    table = SizeTable(program, tools.target, output_names(program))
    chosen: Right | None = None
    if measurer is None:
        with tools.on("verification"), tools.file_time.counting():
            outcome, chosen = yield from _best_by_size(unit, found, table, tools, bounds, ending)
    else:
        first = ahead(unit, found, tools, bounds, ending.left_s)
        yield from waited(tools, place.region, cancelled, ending)
        with tools.on("verification"):
            outcome = yield from fastest_that_is_right(
                kernels, unit, smaller, table, telling, tools, measurer, bounds, first, ending
            )
    rejected = kernels.rejected + Counter(outcome.rejected)
    if outcome.slower is not None:
        slower = outcome.slower
        shown = replace(_untested(kernels, library), measured_us=slower.us, plain_us=slower.plain_us)
        return found.result(unit, shown, slower.words, rejected)
    if outcome.untested is not None:
        shown = _untested(kernels, library, outcome.untested)
        telling.chosen(kernels.variants[outcome.untested][0].candidate)
        wrong = f"; what was tested until then was rejected: {_most_common(rejected)}" if rejected else ""
        late = found.result(unit, shown, UNTESTED + wrong, rejected, cut_short=True)
        return replace(late, lowering=lowering, late=True)
    if outcome.right is None:
        failed = "no kernel passed the float test" if not bounds.exact else "no kernel is to be offered"
        reason = f"{failed}: {_most_common(rejected)}"
        # Another way to divide the region may be taken: its result says nothing of this unit.
        yield telling.working(f"{place.name}: {failed}: {'; '.join(why for why, _ in rejected.most_common(3))}", 0, 0)
        return found.result(unit, None, reason, rejected, cut_short=ending.is_over)
    telling.chosen(outcome.right.candidate)
    if chosen is None:
        with tools.on("verification"), tools.file_time.counting():
            chosen, others = yield from with_borders(
                outcome.right, found.ranked.judged, unit, table, telling, tools, exact=bounds.exact, ending=ending
            )
        rejected += Counter(others)
        assert chosen is not None  # its text was checked when it was measured
    with tools.on("verification"):
        right = proved(chosen, program)
    solution = solution_of(right, library)
    if not solution.pays:
        pays_smaller = any(pays_at(small, solution, tools.target, measurer, tools.compare_with) for small in smaller)
        solution = replace(solution, pays_smaller=pays_smaller)
    return with_lowering(found.result(unit, solution, None, rejected), lowering)


def _best_by_size(
    unit: SearchUnit, found: Searched, table: SizeTable, tools: Tools, bounds: Bounds, ending: Ending
) -> Generator[Event, None, tuple[Outcome, Right | None]]:
    """The best by estimate that is right, where nothing is measured; and the same with others where a size is small.
    Their text is one, so that it is checked once."""
    rejected, begin = Counter[str](), 0
    later = bool(unit.program.least)
    while True:
        outcome = yield from best_that_is_right(
            found.kernels, unit, found.telling, tools,
            table=table, exact=bounds.exact, ending=ending, text_later=later, begin=begin,
        )  # fmt: skip
        rejected.update(outcome.rejected)
        if outcome.right is None:
            return replace(outcome, rejected=rejected), None
        chosen, others = yield from with_borders(
            outcome.right, found.ranked.judged, unit, table, found.telling, tools,
            exact=bounds.exact, ending=ending, text_left=later,
        )  # fmt: skip
        rejected.update(others)
        if chosen is not None:
            return replace(outcome, rejected=rejected), chosen
        begin = outcome.number + 1


def ahead(
    unit: SearchUnit, found: Searched, tools: Tools, bounds: Bounds, left_s: float = inf, *, waits: bool = True
) -> int:
    """How many kernels are measured first. They are compiled, where that may be done ahead. left_s: for the unit"""
    variants = [variant for variant, _ in found.kernels.variants]
    near = is_near_memory(unit.program, variants, tools.target)
    first = first_within(left_s, FEW if near else first_of(variants, found.library_us))
    if tools.pool is not None and bounds.tuner == "walk":
        compiled_ahead(unit.program, variants[:first], tools.pool, waits=waits)
    return first


def untested(unit: SearchUnit, found: Searched) -> UnitResult:
    """Where there is no time for its tests: the best by estimate is shown."""
    found.telling.chosen(found.kernels.variants[0][0].candidate)
    shown = _untested(found.kernels, found.library_us)
    late = found.result(unit, shown, UNTESTED, found.kernels.rejected, cut_short=True)
    return replace(late, lowering=found.lowering, late=True)


def _untested(written: Written, library_us: float, number: int = 0) -> Solution:
    """A kernel, by default the best by estimate, of which the topology alone was verified: to be shown, and never
    offered."""
    variant, verdict = written.variants[number]
    return replace(solution_of(Right(variant.candidate, variant.kernel, verdict), library_us), tested=False)


def _most_common(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0] if reasons else "no reason was given"
