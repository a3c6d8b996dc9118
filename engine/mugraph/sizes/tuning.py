"""A dynamic kernel at several sizes on a device: right at each of them, and with the schedule that is fastest there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from mugraph.ir.kernel import KernelSource, Launch
from mugraph.ir.program import TensorProgram
from mugraph.sizes.table import SizeTable, at_step, at_tested_steps, merged, words_of
from mugraph.sizes.up_to import border_steps
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer
from mugraph.tune.tuner import Variant, tune
from mugraph.verification.float_results import FloatResult
from mugraph.verification.float_test import FloatTester

MEASURED = 6
"""Schedules of one kernel that are measured at one size, the best by estimate."""


def tested_at_sizes(tester: FloatTester, kernel: KernelSource, program: TensorProgram) -> FloatResult:
    """The float test at the least, a ragged and the largest size (once, where no size varies), and on both sides of
    where other kernels are launched: the first that fails, else the one with the largest error."""
    found: list[FloatResult] = []
    borders = [at_step(program, [], step) for step in border_steps(program, kernel)]
    for small, _ in [*borders, *at_tested_steps(program, [])]:
        tested = tester.test_kernel(kernel, small)
        if not tested.passed:
            sizes = words_of(program, small.sizes)
            return replace(tested, reason=f"with {sizes}: {tested.reason}") if sizes else tested
        found.append(tested)
    return max(found, key=lambda one: one.max_rel_error or 0.0)


def tuned_sizes(
    table: SizeTable,
    variant: Variant,
    largest: FloatResult,
    measurer: Measurer,
    tester: FloatTester,
    pool: CompilePool | None,
) -> tuple[KernelSource, FloatResult]:
    """The variant, chosen at the largest size, with what is fastest at the others by measuring, and its float test at
    several sizes. largest: of the test at the largest size"""
    program, whole = table.program, variant.kernel
    if not program.least:
        return whole, largest
    kernels = [(kernel.block, kernel.schedule) for kernel in variant.candidate.kernels]
    rows: list[list[Launch]] = [[] for _ in whole.kernels]
    for step in table.steps[:-1]:
        small, _ = at_step(program, [], step)
        for number, part in enumerate(whole.kernels):
            if part.by in program.leading and part.launches:
                each = table.each_choice(kernels, whole, number, step)
                found = [launch for _, launch, _ in islice(each, MEASURED)]
                best = fastest_launch(table, variant, number, found, small, measurer, tester, pool)
                rows[number] += [best[0]] if best is not None else []
    parts = [
        replace(part, launches=merged([*own, *part.launches])) if part.launches else part
        for part, own in zip(whole.kernels, rows, strict=True)
    ]
    source = table.with_parts(whole, parts)
    return source, tested_at_sizes(tester, source, program)


def fastest_launch(
    table: SizeTable,
    variant: Variant,
    number: int,
    launches: Sequence[Launch],
    program: TensorProgram,
    measurer: Measurer,
    tester: FloatTester,
    pool: CompilePool | None,
) -> tuple[Launch, float] | None:
    """Of the launches of kernel `number`, at the program's size, with the microseconds of all kernels; None where none
    is right there."""
    variants: list[tuple[Variant, Launch]] = []
    for launch in launches:
        parts = list(variant.kernel.kernels)
        parts[number] = replace(parts[number], launches=(launch,))
        variants.append((replace(variant, kernel=table.with_parts(variant.kernel, parts)), launch))
    tuned = tune(program, [one for one, _ in variants], measurer, tester, pool)
    fastest = next(tuned.in_turn(), None)
    if fastest is None:
        return None
    return next(launch for one, launch in variants if one is fastest[0]), fastest[1].median_us
