"""The program and its kernels at sizes at which all of them can be run without their device."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.parts import lying_as, ragged_parts, with_sizes
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
    shorter = _shorter(program, whole, kernels)
    small = resize(program, {**program_sizes(program, kernels), **shorter})
    if shorter:
        names = {tensor.name for tensor in small.tensors}
        kernels = [(lying_as(small, with_sizes(block, shorter), names), schedule) for block, schedule in kernels]
    return summing_as_at_full_size(small, kernels, program, whole)


def _shorter(program: TensorProgram, whole: Sequence[tuple[BlockGraph, Schedule]], kernels: Kernels) -> dict[str, int]:
    """Sizes of axes with a last part that is as much shorter than the others as it is at full size, and of no whole
    tiles where it is so there."""
    found = dict[str, int]()
    for (full, own), (block, schedule) in zip(whole, kernels, strict=True):
        parts = ragged_parts(program, full, own)
        if parts is None:
            continue
        length, size = schedule.part, program.sizes[parts.axis]
        missing = (full.sizes[parts.split] * own.part - size) * length // own.part
        tile = schedule.loops[parts.part]
        if size % own.loops[parts.part] == 0:
            missing = missing // tile * tile
        elif missing % tile == 0:
            missing += 1
        found[parts.axis] = block.sizes[parts.split] * length - min(missing, length - 1)
    return found
