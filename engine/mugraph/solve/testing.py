"""Test, where nothing is measured: the best kernel by estimate that is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import replace

from mugraph.codegen.lower import lower_kernels
from mugraph.events import Event
from mugraph.ir.kernel import Rejected
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.sizes.indexed import indexed
from mugraph.sizes.same_bits import same_bits
from mugraph.sizes.smaller import smaller
from mugraph.sizes.table import SizeTable, at_tested_steps
from mugraph.sizes.text import text_checked
from mugraph.sizes.tuning import tested_at_sizes
from mugraph.solve.ending import NO_END, Ending
from mugraph.solve.right import Outcome, Right, with_float
from mugraph.solve.telling import Telling
from mugraph.solve.tools import Tools
from mugraph.solve.writing import Written, kernels_of
from mugraph.verification.float_test import LATE
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import verify_schedules

FLOAT_TRIED = 6
"""Kernels tested at most, the best by estimate first, until one is right."""


def best_that_is_right(
    written: Written,
    unit: SearchUnit,
    telling: Telling,
    tools: Tools,
    *,
    table: SizeTable | None = None,
    exact: bool = False,
    ending: Ending = NO_END,
    text_later: bool = False,
    begin: int = 0,
) -> Generator[Event, None, Outcome]:
    """A kernel is right if its tiles are right over finite fields, and its results in floating point. It runs compiled
    and at full size where its device is here, else in Triton's interpreter at reduced sizes: full ones take minutes.

    table: has the schedules for smaller sizes of those after the first, which have them
    exact: only a kernel that is known to have the same bits as PyTorch
    ending: when it is over, no kernel is tested any more, and what is being tested is given up
    text_later: the text of what is right will be checked by whoever asks, as a part of another
    begin: the number of the first kernel that is tested
    """
    program = unit.program
    where = "on the device" if tools.compiled else "in Triton's interpreter"
    rejected: Counter[str] = Counter()
    for number, (variant, verdict) in enumerate(written.variants[begin:], begin):
        if ending.is_over:
            return Outcome(None, rejected, untested=number)
        yield telling.working(f"testing {telling.place.name} {where}", number, len(written.variants))
        whole = kernels_of(variant.candidate)
        if number and table is not None and program.least:
            try:
                variant = replace(variant, kernel=table.source(whole))
            except Rejected as error:
                rejected[str(error)] += 1
                continue
        small, kernels = smaller(program, whole)
        tiles = [verify_schedules(*one) for one in at_tested_steps(small, kernels)]
        indexing = indexed(program, whole, variant.kernel)
        wrong = _first_wrong([*tiles, indexing])
        if wrong is not None:
            rejected[f"its tiles: {wrong.reason}"] += 1
            continue
        text = Verdict(True) if text_later else text_checked(program, variant.kernel, whole)
        if not text.passed:
            rejected[f"its text: {text.reason}"] += 1
            continue
        run, at = variant.kernel, program
        if not tools.compiled:
            try:
                run, at = lower_kernels(kernels, target=tools.target, outputs=output_names(small), program=small), small
            except Rejected as error:
                rejected[f"at reduced sizes: {error}"] += 1
                continue
        with tools.tester.until(ending.left_s):
            tested = tested_at_sizes(tools.tester, run, at)
        if not tested.passed and LATE in (tested.reason or ""):
            return Outcome(None, rejected, untested=number)
        if not tested.passed:
            rejected[tested.reason or f"wrong {where}"] += 1
            continue
        bits = same_bits(unit, variant.kernel, tested)
        if exact and not bits.holds:
            rejected[bits.words] += 1
            continue
        right = Right(variant.candidate, variant.kernel, with_float(verdict, tested, indexing, text, at, bits))
        return Outcome(right, rejected, number=number)
    return Outcome(None, rejected)


def output_names(program: TensorProgram) -> list[str]:
    return [tensor.name for tensor in program.outputs.values()]


def _first_wrong(verdicts: list[Verdict]) -> Verdict | None:
    return next((verdict for verdict in verdicts if not verdict.passed), None)
