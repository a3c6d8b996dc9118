"""Which of several kernels is best for a range of sizes. The fastest at the largest size need not be it.

The user's own code runs where no kernel is faster, so a kernel that is slow at some sizes costs nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, log2

from mugraph.ir.program import TensorProgram
from mugraph.sizes.table import SizeTable, at_step
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import Tuned, Variant, tune
from mugraph.verification.float_results import FloatResult
from mugraph.verification.float_test import FloatTester

OTHERS = 4
"""Variants of further topologies, the best of each, that are compared with the fastest at the largest size."""

Chosen = tuple[Variant, Summary, FloatResult]


def by_sizes(
    table: SizeTable,
    tuned: Tuned,
    ranked: Sequence[Variant],
    plain_us: Mapping[int, float],
    measurer: Measurer,
    tester: FloatTester,
    pool: CompilePool | None,
) -> list[Chosen]:
    """Variants that are right at the largest size, the best over all sizes first: by the geometric mean of the times.

    tuned, ranked: at the largest size; ranked: the best by estimate first
    plain_us:      smaller steps -> microseconds of the user's own code at each; infinite where that is not known
    """
    largest_us = {id(one): us for one, us in tuned.measured_us}
    largest_us |= {id(one): summary.median_us for one, summary, _ in tuned.times}
    candidates = [*(one for one, _, _ in tuned.times), *_others(tuned, ranked, largest_us)]
    scores = {id(one): log2(max(largest_us[id(one)], 1e-3)) for one in candidates}
    for step, most in plain_us.items():
        small, _ = at_step(table.program, [], step)
        found = _measured(table, candidates, step, small, measurer, tester, pool)
        for one in candidates:
            scores[id(one)] += log2(max(min(found.get(id(one), inf), most, 1e9), 1e-3))
    right = {id(one): (one, summary, tested) for one, summary, tested in tuned.times}
    chosen: list[Chosen] = []
    for one in sorted(candidates, key=lambda one: scores[id(one)]):
        if id(one) in right:
            chosen.append(right[id(one)])
        elif not chosen:  # one that comes after one that is right is not needed
            tested = tester.test_kernel(one.kernel, table.program)
            if tested.passed:
                chosen.append((one, Summary(largest_us[id(one)], 0.0, 1), tested))
    return chosen


def _others(tuned: Tuned, ranked: Sequence[Variant], known: Mapping[int, float]) -> list[Variant]:
    """Of topologies that are not among the fastest, the best by estimate that was timed."""
    seen = {one.candidate.topology for one, _, _ in tuned.times}  # which tests them
    wrong = {id(one) for one, _ in tuned.refused}
    found: list[Variant] = []
    for one in ranked:
        if one.candidate.topology not in seen and id(one) in known and id(one) not in wrong:
            seen.add(one.candidate.topology)
            found.append(one)
    return found[:OTHERS]


def _measured(
    table: SizeTable,
    variants: Sequence[Variant],
    step: int,
    small: TensorProgram,
    measurer: Measurer,
    tester: FloatTester,
    pool: CompilePool | None,
) -> dict[int, float]:
    """Ids of variants -> microseconds at a step, each with the schedule that is best there by estimate."""
    made = {id(one): _at_step(table, one, step) for one in variants}
    tuned = tune(small, list(made.values()), measurer, tester, pool)
    us = {id(one): us for one, us in tuned.measured_us}
    tuned.test()
    wrong = {id(one) for one, _ in tuned.refused}
    return {own: us[id(one)] for own, one in made.items() if id(one) in us and id(one) not in wrong}


def _at_step(table: SizeTable, variant: Variant, step: int) -> Variant:
    kernels = [(kernel.block, kernel.schedule) for kernel in variant.candidate.kernels]
    parts = list(variant.kernel.kernels)
    for number, part in enumerate(parts):
        varies = bool(part.launches) and part.by in table.program.least  # not by how many parts there are
        found = next(table.each_choice(kernels, variant.kernel, number, step), None) if varies else None
        if found is not None:
            parts[number] = replace(part, launches=(found[1],))
    return replace(variant, kernel=table.with_parts(variant.kernel, parts))
