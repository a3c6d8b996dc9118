"""Test and measure, on a device: the fastest kernel that is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Sequence
from math import inf

from mugraph.events import Event
from mugraph.ir.block import Candidate
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import SearchUnit
from mugraph.search.schedules.neighbours import key, neighbours
from mugraph.sizes.choice import Chosen, by_sizes
from mugraph.sizes.indexed import indexed
from mugraph.sizes.same_bits import same_bits
from mugraph.sizes.table import SizeTable, step_of
from mugraph.sizes.text import text_checked
from mugraph.sizes.tuning import tuned_sizes
from mugraph.solve.paying import plain_us
from mugraph.solve.right import Outcome, Right, with_float
from mugraph.solve.telling import Telling
from mugraph.solve.tools import Tools
from mugraph.solve.writing import Written, kernels_of
from mugraph.tune.measure import Measurer
from mugraph.tune.tuner import WALKS, Variant, tune


def fastest_that_is_right(
    written: Written,
    unit: SearchUnit,
    smaller: Sequence[SearchUnit],
    table: SizeTable,
    telling: Telling,
    tools: Tools,
    measurer: Measurer,
    *,
    exact: bool = False,
) -> Generator[Event, None, Outcome]:
    """smaller: of a size in a range, the unit at others than the largest, which count as much
    exact: only a kernel that is known to have the same bits as PyTorch"""
    yield telling.working(f"measuring {telling.place.name}", 0, len(written.variants))
    rejected: Counter[str] = Counter()

    ranked = [variant for variant, _ in written.variants]
    lowered: dict[Hashable, Variant | None] = {_key(variant.candidate): variant for variant in ranked}
    first = frozenset(lowered)

    def around(variant: Variant) -> list[Variant]:
        """No more than may be measured: to lower all takes seconds."""
        found: list[Variant] = []
        for candidate in neighbours(variant.candidate, tools.target):
            which = _key(candidate)
            if which in first:  # it has been measured
                continue
            if which not in lowered:
                try:
                    with tools.on("code generation"):
                        lowered[which] = Variant(candidate, table.lowered(kernels_of(candidate)))
                except Rejected as error:  # one neighbour of many
                    rejected[str(error)] += 1
                    lowered[which] = None
            one = lowered[which]
            if one is not None:
                found.append(one)
                if len(found) == sum(WALKS):
                    break
        return found

    tuned = tune(unit.program, ranked, measurer, tools.tester, tools.pool, around=around)
    for one, us in [*tuned.measured_us, *tuned.again_us]:
        yield telling.timed(one.candidate, us)
    fastest: Iterable[Chosen] = tuned.in_turn()
    if smaller:
        plain = {step_of(table.program, one.program): plain_us(one, measurer) or inf for one in smaller}
        fastest = by_sizes(table, tuned, ranked, plain, measurer, tools.tester, tools.pool)
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
        # A neighbour has its topology, and so its verdict, from the candidate that the walk began with.
        block = variant.candidate.block
        verdict = next(verdict for other, verdict in written.variants if other.candidate.block is block)
        bits = same_bits(unit, source, tested)
        if exact and not bits.holds:
            rejected[bits.words] += 1
            continue
        verdict = with_float(verdict, tested, indexing, text, unit.program, bits)
        plain_alone = plain_us(unit, measurer) if telling.place.units > 1 else None
        rejected.update(reason for _, reason in tuned.refused)
        return Outcome(Right(variant.candidate, source, verdict, summary.median_us, plain_alone), rejected)
    rejected.update(reason for _, reason in tuned.refused)
    return Outcome(None, rejected)


def _key(candidate: Candidate) -> Hashable:
    """What candidates of one program differ in."""
    return tuple((kernel.block.ops, key(kernel.schedule), kernel.schedule.library) for kernel in candidate.kernels)
