"""The last check of what is offered: its kernels keep the rules of block graphs, and every schedule that a launch may
choose indexes its tensors right at the size it is chosen for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_candidate
from mugraph.sizes.table import at_step, sizes_at, steps_of, words_of
from mugraph.sizes.up_to import last_step, program_up_to_size
from mugraph.verification.document import PASSES
from mugraph.verification.full_size import verify_full_size
from mugraph.verification.verdict import Verdict

Kernels = Sequence[tuple[BlockGraph, Schedule]]


def indexed(program: TensorProgram, kernels: Kernels, source: KernelSource) -> Verdict:
    """The check over finite fields, at full size. With a range of sizes it is made at each size after which the
    launcher takes another schedule."""
    found = _at_its_size(program, kernels)
    if not program.least or not found.passed:
        return found
    for (block, _), part in zip(kernels, source.kernels, strict=True):
        sizes = [row.largest for row in part.launches]
        whole = block.sizes.get(part.by, program.sizes.get(part.by))
        if sizes and (sizes != sorted(set(sizes)) or sizes[-1] != whole or sizes[0] < 1):
            return Verdict(False, f"{block.name} has schedules up to the sizes {sizes}, the largest being {whole}")
    steps = {
        step
        for (block, _), part in zip(kernels, source.kernels, strict=True)
        for step in _steps(program, block, part)
    }  # fmt: skip
    for step in sorted(steps):
        chosen = [
            (block, _at_step(program, block, schedule, part, step))
            for (block, schedule), part in zip(kernels, source.kernels, strict=True)
        ]
        verdict = _at_its_size(*at_step(program, chosen, step))
        if not verdict.passed:
            return replace(verdict, reason=f"{verdict.reason}, at {words_of(program, sizes_at(program, step))}")
    for one in source.smaller:
        small = program_up_to_size(program, one.axis, one.largest)
        if small is None:
            return Verdict(False, f"kernels up to {one.axis} = {one.largest} are for a part of the range only")
        verdict = indexed(small, one.kernels, one.source)
        if not verdict.passed:
            return replace(verdict, reason=f"{verdict.reason}, of the kernels up to {one.axis} = {one.largest}")
        steps |= {last_step(program, one)}
    if len(steps) == 1:
        return found
    return replace(found, indexing=f"{found.indexing}; so with the schedules for {len(steps) - 1} smaller sizes")


def _steps(program: TensorProgram, block: BlockGraph, part: KernelSource) -> list[int]:
    """Steps after which the launcher takes another schedule of a kernel."""
    _, largest = steps_of(program)
    if part.by not in program.leading:
        return [largest] if part.launches else []
    return [row.largest * largest // program.sizes[part.by] for row in part.launches]


def _at_step(program: TensorProgram, block: BlockGraph, own: Schedule, part: KernelSource, step: int) -> Schedule:
    """The schedule that the launcher takes at a step: that of the first row for sizes as large."""
    rows = zip(_steps(program, block, part), part.launches, strict=False)
    return next((row.schedule for last, row in rows if last >= step), own)


def _at_its_size(program: TensorProgram, kernels: Kernels) -> Verdict:
    for block, schedule in kernels:
        violations = check_candidate(block, schedule, passes=PASSES)
        if violations:
            return Verdict(False, f"{block.name}: {violations[0]}")
    return verify_full_size(program, kernels)
