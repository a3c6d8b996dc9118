"""Test and measure, on a device: the fastest kernel that is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from math import inf

from mugraph.events import Event
from mugraph.ir.block import Candidate
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import SearchUnit
from mugraph.options import Bounds
from mugraph.sizes.choice import Chosen, by_sizes
from mugraph.sizes.indexed import indexed
from mugraph.sizes.same_bits import same_bits
from mugraph.sizes.table import SizeTable, step_of
from mugraph.sizes.text import text_checked
from mugraph.sizes.tuning import tuned_sizes
from mugraph.solve.ending import NO_END, Ending
from mugraph.solve.near_memory import copy_us, is_near_memory
from mugraph.solve.paying import plain_us
from mugraph.solve.right import Outcome, Right, Slower, with_float
from mugraph.solve.telling import Telling
from mugraph.solve.tools import Tools
from mugraph.solve.tuners import tuner_among
from mugraph.solve.writing import Written, kernels_of
from mugraph.tune.measure import Measurer
from mugraph.tune.tuner import Variant, is_hopeless, tune


def fastest_that_is_right(
    written: Written,
    unit: SearchUnit,
    smaller: Sequence[SearchUnit],
    table: SizeTable,
    telling: Telling,
    tools: Tools,
    measurer: Measurer,
    bounds: Bounds,
    first: int,
    ending: Ending = NO_END,
) -> Generator[Event, None, Outcome]:
    """smaller: of a size in a range, the unit at others than the largest, which count as much. first: of `tune`
    ending: when it is over, no further kernel is measured; the fastest is still tested"""
    yield telling.working(f"measuring {telling.place.name}", 0, len(written.variants))
    rejected: Counter[str] = Counter()
    plain = None if smaller else plain_us(unit, measurer)

    def made(candidate: Candidate) -> Variant | None:
        try:
            with tools.on("code generation"):
                return Variant(candidate, table.lowered(kernels_of(candidate)))
        except Rejected as error:  # one candidate of many
            rejected[str(error)] += 1
            return None

    ranked = [variant for variant, _ in written.variants]
    tuner = tuner_among(ranked, made, tools.target, bounds)
    tuned = tune(
        unit.program,
        ranked,
        measurer,
        tools.tester,
        tools.pool,
        tuner=tuner,
        trials=bounds.trials,
        worth_us=plain,
        first=first,
        over=lambda: ending.is_over,
        enough_us=copy_us(unit.program, measurer) if is_near_memory(unit.program, ranked, tools.target) else None,
    )
    for one, us in [*tuned.measured_us, *tuned.again_us]:
        yield telling.timed(one.candidate, us)
    if plain is not None and tuned.best_us is not None and is_hopeless(tuned.best_us, plain):
        rejected.update(reason for _, reason in tuned.refused)
        return Outcome(None, rejected, Slower(tuned.best_us, plain))
    fastest: Iterable[Chosen] = tuned.in_turn()
    if smaller:
        others = {step_of(table.program, one.program): plain_us(one, measurer) or inf for one in smaller}
        fastest = by_sizes(table, tuned, ranked, others, measurer, tools.tester, tools.pool)
    for variant, summary, largest in fastest:
        source, tested = tuned_sizes(table, variant, largest, measurer, tools.tester, tools.pool)
        if not tested.passed:
            rejected[tested.reason or "wrong on the device"] += 1
            continue
        indexing = indexed(unit.program, kernels_of(variant.candidate), source)
        if not indexing.passed:
            rejected[f"its tiles: {indexing.reason}"] += 1
            continue
        text = text_checked(unit.program, source, kernels_of(variant.candidate))
        if not text.passed:
            rejected[f"its text: {text.reason}"] += 1
            continue
        # What a tuner has found has its topology, and so its verdict, from one of the candidates it began with.
        block = variant.candidate.block
        verdict = next(verdict for other, verdict in written.variants if other.candidate.block is block)
        bits = same_bits(unit, source, tested)
        if bounds.exact and not bits.holds:
            rejected[bits.words] += 1
            continue
        verdict = with_float(verdict, tested, indexing, text, unit.program, bits)
        if smaller and telling.place.units > 1:
            plain = plain_us(unit, measurer)
        plain_alone = plain if telling.place.units > 1 else None
        rejected.update(reason for _, reason in tuned.refused)
        return Outcome(Right(variant.candidate, source, verdict, summary.median_us, plain_alone), rejected)
    rejected.update(reason for _, reason in tuned.refused)
    return Outcome(None, rejected)
