"""Kernels of a plan whose sums another one combines, as one launch with it (codegen/last_block.py): which could be,
written; whether it is right, launch_verdict.py says.

The second kernel spreads what it combines over a grid of its own. Here one block has all of a group, next to others
that have theirs. So it is scheduled anew, in tiles that a block has registers for, within those of the first kernel.
There are two sizes of them to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, prod

from mugraph.codegen.last_block import digits
from mugraph.codegen.one_grid import bytes_of
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource, LastBlock, Rejected
from mugraph.optimizer.nodes import node_of, scheduled
from mugraph.plans.beside import Step
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.solve.one_launch import NOT_YET, Sources, Written, with_steps, write
from mugraph.targets import Target

Kernel = tuple[BlockGraph, Schedule]

_EACH = (32, 8)
"""Numbers of the largest tile that a thread has."""
_THREADS = 32
_MOST_BYTES = 1 << 18
"""That the last block of a group goes through. A multiprocessor reads 64 bytes of the second-level cache in a cycle: to
read more takes longer than the launch that is saved, 1 to 2.5 microseconds."""


def last_blocks(plan: RegionPlan, sources: Sources, target: Target) -> list[Written]:
    """The plan with such kernels as one launch each, for each size of the second kernel's tiles: none where no kernels
    can be."""
    if plan.region.dynamic is not None:
        return []
    found: list[Written] = []
    for each in _EACH:
        made = {
            step.kernel.name: one
            for step in plan.steps
            if isinstance(step, KernelStep)
            and (one := _combined(step, sources[step.kernel.name], target, each)) is not None
        }
        if not made:
            continue
        steps: list[Step] = []
        for step in plan.steps:
            new = made.get(step.kernel.name) if isinstance(step, KernelStep) else None
            steps.append(step if new is None else new[0])
        old = {step.kernel.name: (step.verdict,) for step in plan.steps if isinstance(step, KernelStep)}
        own = {name: source for name, (_, source) in made.items()}
        written = Written(with_steps(plan, steps), {**sources, **own}, {name: old[name] for name in made})
        if written.sources not in [one.sources for one in found]:
            found.append(written)
    return found


def _combined(
    step: KernelStep, source: KernelSource, target: Target, each: int
) -> tuple[KernelStep, KernelSource] | None:
    if step.one_launch or step.unit.program.least or source.smaller or len(source.parts) != len(step.kernels):
        return None
    kernels, program = [*map(scheduled, step.kernels)], step.unit.program
    outputs = [tensor.name for tensor in program.outputs.values()]
    pairs: list[tuple[str, str]] = []
    best: KernelSource | None = None
    at = 0
    while at + 1 < len(kernels):
        tried, names = list(kernels), (kernels[at][0].name, kernels[at + 1][0].name)
        made = None
        if _may_meet(source.parts[at], source.parts[at + 1]):
            tried[at + 1] = kernels[at + 1][0], schedule_of(kernels[at], kernels[at + 1], each)
            made = _lowered(replace(step, combined=(*pairs, names)), tried, outputs, target)
        if made is not None:
            best, kernels = made, tried
            pairs.append(names)
        at += 1 if made is None else 2
    if best is None:
        return None
    first, *then = (node_of(*kernel) for kernel in kernels)
    return replace(step, kernel=first, then=tuple(then), verdict=NOT_YET, combined=tuple(pairs)), best


def _lowered(
    step: KernelStep, kernels: Sequence[Kernel], outputs: Sequence[str], target: Target
) -> KernelSource | None:
    try:
        source = write(step, target)(kernels, outputs, step.unit.program)
    except Rejected:
        return None
    made = [part.combined for part in source.kernels if part.combined is not None]
    return source if all(map(_is_short, made)) else None


def _is_short(made: LastBlock) -> bool:
    """Does a last block combine what several have stored, and little of it?"""
    return made.members > 1 and bytes_of(made.second) <= _MOST_BYTES * made.groups


def _may_meet(first: KernelSource, second: KernelSource) -> bool:
    made = {tensor.name for tensor in first.outputs}
    generated = first.library is None and second.library is None
    return generated and first.grid != (1, 1, 1) and made <= {tensor.name for tensor in second.inputs}


def schedule_of(first: Kernel, second: Kernel, each: int) -> Schedule:
    """Of the second kernel, whose tiles lie within those of the first. each: numbers that a thread has of the largest
    tile"""
    block, own = second
    sizes = block.sizes
    tiles = {digit.axis: dict(first[1].grid)[digit.axis] for digit in digits(*first)}
    stored = [tensor.axes for tensor in block.outputs]
    spread = [axis for axis in reversed(stored[0]) if axis not in own.loops and all(axis in axes for axes in stored)]
    held = prod(own.loops.get(axis, sizes[axis]) for axis in _axes(block) if axis not in spread)
    room = max(1, each * _THREADS * first[1].num_warps // max(1, held))
    grid: list[tuple[str, int]] = []
    for axis in spread:  # neighbours in memory first
        most = min(tiles.get(axis, sizes[axis]), sizes[axis])
        tile = min(_at_least(most), _at_most(room))
        if axis in tiles and ceil(sizes[axis] / tile) * tile != ceil(sizes[axis] / tiles[axis]) * tiles[axis]:
            tile = tiles[axis]  # the last tile of the first kernel is no whole number of smaller ones
        room = max(1, room // tile)
        grid.append((axis, tile))
    return replace(own, grid=tuple(grid), num_warps=first[1].num_warps, num_stages=first[1].num_stages)


def _axes(block: BlockGraph) -> Iterator[str]:
    return iter(dict.fromkeys(axis for op in block.ops for axis in op.axes))


def _at_least(number: int) -> int:
    """The least power of two that is."""
    return 1 << (number - 1).bit_length()


def _at_most(number: int) -> int:
    return 1 << (number.bit_length() - 1)
