"""The program and its kernels at sizes at which all of them can be run without their device."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.reduced import program_sizes, reduced_kernels
from mugraph.ir.transforms.resizing import resize
from mugraph.verification.weights import summing_as_at_full_size

LARGEST_TILE = 32
"""Of a kernel in the interpreter; half as much where several kernels follow one another: one of them may have small
tiles, and then has too many blocks at the sizes that another needs."""

Kernels = list[tuple[BlockGraph, Schedule]]


def smaller(program: TensorProgram, whole: Sequence[tuple[BlockGraph, Schedule]]) -> tuple[TensorProgram, Kernels]:
    tile = LARGEST_TILE if len(whole) == 1 else LARGEST_TILE // 2
    sizes = sorted({program.sizes[axis] for axis in program.least})
    groups = program.varying_together
    together = [{a for a in group if program.sizes[a] == size} for group in groups for size in sizes]
    together = [axes for axes in together if axes]
    calls = [library_call(block) for block, schedule in whole if schedule.library]
    counted = {axis for call in calls if call is not None for axis in call.counted}
    kernels = reduced_kernels(whole, largest_tile=tile, together=together, kept=counted)
    small = resize(program, program_sizes(program, kernels))
    return summing_as_at_full_size(small, kernels, program, whole)
