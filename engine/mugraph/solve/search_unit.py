"""The way of one search unit, from its tensor program to a verified kernel, as a list of steps.

    one_kernel       search: topologies of one kernel                      rooms: search, executors
    several_kernels  search: kernel graphs of several                      rooms: search, executors
    ranking          schedule, verify: the candidates, best first          rooms: search, verification
    writing          lower: their kernels in Triton                        rooms: sizes, codegen
    lowering         run the recorded calls: is the program what they are? room:  verification
    testing          test: the best by estimate that is right, if it pays  rooms: verification, codegen, sizes
    or measuring     test and measure: the fastest that is right           rooms: tune, verification, sizes
    right            fuse: its thread graphs                               room:  optimizer
    paying           whether it gains at another size of a range           rooms: sizes, tune

Each step takes the values of those before it and returns its own. Steps yield the events that Telling makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from math import inf

from mugraph.events import Event, Solution, UnitResult
from mugraph.ir.region import SearchUnit
from mugraph.options import Bounds
from mugraph.search.topologies.limits import never
from mugraph.sizes.table import SizeTable
from mugraph.solve.ending import NO_END, UNTESTED, Ending
from mugraph.solve.lowering import lowering_of, with_lowering
from mugraph.solve.measuring import fastest_that_is_right
from mugraph.solve.paying import pays_at
from mugraph.solve.pytorch import compared, library_us
from mugraph.solve.ranking import ranked_candidates
from mugraph.solve.right import Right, proved, solution_of
from mugraph.solve.telling import Place, Telling
from mugraph.solve.testing import FLOAT_TRIED, best_that_is_right, output_names
from mugraph.solve.tools import Tools
from mugraph.solve.waiting import waited
from mugraph.solve.writing import Written, written
from mugraph.tune.tuner import compiled_ahead, first_of
from mugraph.tune.tuners.model_then_walk import MEASURED, TRIALS

_BEATEN = 1.25
"""Times what another way to divide the region takes: a kernel that is estimated above is not measured either."""


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
    tools.begin()
    telling = Telling(place)
    program, measurer = unit.program, tools.measurer
    library = min(library_us(unit, tools.target, compared(place, tools.compare_with)), most_us)
    with tools.on("search"), tools.file_time.counting():
        # A size of a range, and a device, may show what the estimate at the largest size does not.
        worth_us = library if measurer is None and not smaller else inf
        ranked = yield from ranked_candidates(program, telling, tools, bounds, cancelled, worth_us, ending)

    def result(
        solution: Solution | None, reason: str | None, rejected: Mapping[str, int], *, cut_short: bool = False
    ) -> UnitResult:
        report = replace(ranked.report, out_of_time=ranked.report.out_of_time or cut_short)
        return UnitResult(unit, solution, report, reason, rejected, kernel=place.name, considered=telling.considered)

    if not ranked.candidates:
        return result(None, ranked.reason, {})
    table = SizeTable(program, tools.target, output_names(program))
    most = FLOAT_TRIED if measurer is None else MEASURED if bounds.trials <= TRIALS else bounds.trials
    with tools.on("code generation"):
        kernels = written(ranked.candidates, table, place.name, most, measured=measurer is not None)
    if not kernels.variants:
        reason = f"no candidate can be written as a kernel: {_most_common(kernels.rejected)}"
        return result(None, reason, kernels.rejected)
    if not smaller:
        shown = _untested(kernels, library)
        beaten = shown.estimate_us > _BEATEN * most_us
        if beaten or (measurer is None and not shown.is_expected_to_pay):  # nor is any other: it is the best
            telling.chosen(kernels.variants[0][0].candidate)
            return result(shown, None, kernels.rejected)
    with tools.on("verification"), tools.file_time.counting(), tools.tester.until(ending.left_s):
        lowering = lowering_of(unit, smaller, place, tools)
    if lowering.passed is False:
        return replace(result(None, lowering.words, kernels.rejected), lowering=lowering)
    if measurer is None:
        with tools.on("verification"), tools.file_time.counting():
            found = yield from best_that_is_right(kernels, unit, telling, tools, exact=bounds.exact, ending=ending)
    else:
        first = first_of([variant for variant, _ in kernels.variants], library)
        if tools.pool is not None and bounds.tuner == "walk":
            compiled_ahead(program, [variant for variant, _ in kernels.variants[:first]], tools.pool)
        yield from waited(tools, place.region, cancelled)
        with tools.on("verification"):
            found = yield from fastest_that_is_right(
                kernels, unit, smaller, table, telling, tools, measurer, bounds, first
            )
    rejected = kernels.rejected + Counter(found.rejected)
    if found.slower is not None:
        shown = replace(_untested(kernels, library), measured_us=found.slower.us, plain_us=found.slower.plain_us)
        return result(shown, found.slower.words, rejected)
    if found.untested is not None:
        shown = _untested(kernels, library, found.untested)
        telling.chosen(kernels.variants[found.untested][0].candidate)
        return replace(result(shown, UNTESTED, rejected, cut_short=True), lowering=lowering, late=True)
    if found.right is None:
        failed = "no kernel passed the float test" if not bounds.exact else "no kernel is to be offered"
        reason = f"{failed}: {_most_common(rejected)}"
        return result(None, reason, rejected, cut_short=ending.is_over)
    telling.chosen(found.right.candidate)
    with tools.on("verification"):
        right = proved(found.right, program)
    solution = solution_of(right, library)
    if not solution.pays:
        pays_smaller = any(pays_at(small, solution, tools.target, measurer, tools.compare_with) for small in smaller)
        solution = replace(solution, pays_smaller=pays_smaller)
    return with_lowering(result(solution, None, rejected), lowering)


def _untested(written: Written, library_us: float, number: int = 0) -> Solution:
    """A kernel, by default the best by estimate, of which the topology alone was verified: to be shown, and never
    offered."""
    variant, verdict = written.variants[number]
    return replace(solution_of(Right(variant.candidate, variant.kernel, verdict), library_us), tested=False)


def _most_common(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0] if reasons else "no reason was given"
