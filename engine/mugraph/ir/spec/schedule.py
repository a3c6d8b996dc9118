"""Rules of schedules: grid, tiles and what a thread block can hold."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from mugraph.ir.block import TF32, BlockGraph, Schedule
from mugraph.ir.dtypes import ITEMSIZE
from mugraph.ir.library import library_call
from mugraph.ir.ops import Kind
from mugraph.ir.packing import held, lanes, pack_violations, packed, sides_of, wide_axes
from mugraph.ir.placement import varying
from mugraph.targets import Target

MAX_TILE_ELEMENTS = 1 << 20
"""Triton's limit on the elements of one tile."""

MAX_WARPS = 32


def schedule_violations(
    block: BlockGraph, schedule: Schedule, target: Target | None, for_codegen: bool
) -> Iterator[str]:
    """for_codegen: with what a tensor core takes"""
    if schedule.library:  # it has no tiles that could be wrong
        if library_call(block) is None:
            yield "no library call computes it without a copy"
        return
    yield from _plan_violations(block, schedule)
    if schedule.precision == TF32 and not any(op.tf32 for op in block.ops):
        yield "its products are to take tf32, and no product of the program may"
    known = set(block.sizes).issuperset(axis for op in block.ops for axis in (*op.axes, *op.over))
    found = packed(block, schedule) if known else ()
    for op in block.ops:
        # A store's tile is its operand's.
        if op.kind is not Kind.STORE and set(op.axes) <= set(block.sizes):
            elements = prod(lanes(block, schedule, axis) for axis in held(op.axes, found))
            if elements > MAX_TILE_ELEMENTS:
                yield f"{op.name}: a tile of {elements} elements is over the limit of {MAX_TILE_ELEMENTS}"
    if for_codegen:
        yield from _dot_violations(block, schedule)
    if target is not None and (needed := least_shared_memory(block, schedule)) > target.shared:
        yield f"at least {needed} bytes of shared memory are needed; a block on {target.name} has {target.shared}"


def least_shared_memory(block: BlockGraph, schedule: Schedule) -> int:
    """A lower bound in bytes: the pipeline's buffers for tiles that dots read straight from looped loads.

    Whatever else a compiler keeps there comes on top; what exceeds the device already here cannot run.
    """
    vary = varying(block)
    fed = {name for op in block.ops if op.kind.contracts for name in op.inputs}
    itemsize = {tensor.name: ITEMSIZE[tensor.dtype] for tensor in block.tensors}
    buffers = max(1, schedule.num_stages - 1)
    return sum(
        buffers * itemsize[op.tensor] * prod(lanes(block, schedule, axis) for axis in op.axes)
        for op in block.ops
        if op.kind is Kind.LOAD and op.name in fed and vary[op.name]
    )


def _plan_violations(block: BlockGraph, schedule: Schedule) -> Iterator[str]:
    """Grid and loop axes with their tiles, and the launch."""
    grid = [axis for axis, _ in schedule.grid]
    loops = block.loop_axes
    for axis in sorted(set(grid)):
        if grid.count(axis) > 1:
            yield f"grid axis {axis} occurs more than once"
        if axis not in block.sizes:
            yield f"grid axis {axis} has no size"
        if axis in loops:
            yield f"axis {axis} is both on the grid and looped"
        # Of several outputs one may lack it: all blocks along the axis have the same tile, and one of them stores it.
        if not any(axis in tensor.axes for tensor in block.outputs):
            names = " and ".join(tensor.name for tensor in block.outputs)
            yield f"grid axis {axis} is missing from output {names}: blocks would write the same elements"
        for op in block.ops:
            if axis in op.over:
                yield f"{op.name} reduces grid axis {axis}, of which a block has one tile only"
    for axis in loops:
        if axis not in schedule.loops:
            yield f"loop {axis} has no tile"
    for axis in schedule.loops:
        if axis not in loops:
            yield f"there is a tile for {axis}, which is no loop"
    for axis, tile in (*schedule.grid, *schedule.loops.items()):
        if not _is_power_of_two(tile):
            yield f"the tile of axis {axis} is {tile}, no power of two"
    if not _is_power_of_two(schedule.num_warps) or schedule.num_warps > MAX_WARPS:
        yield f"num_warps is {schedule.num_warps}, no power of two up to {MAX_WARPS}"
    if schedule.num_stages < 1:
        yield f"num_stages is {schedule.num_stages}"


def _dot_violations(block: BlockGraph, schedule: Schedule) -> Iterator[str]:
    """What a tensor core takes: one dimension a side, one element of each batch axis.

    A dot with a side that has no wide axis is a matrix-vector product, lowered to multiply and sum: no rule holds.
    """
    axes = {op.name: frozenset(op.axes) for op in block.ops}
    wide = wide_axes(block, schedule)
    for op in block.ops:
        if not op.kind.contracts or len(op.inputs) != 2 or not all(name in axes for name in op.inputs):
            continue
        *sides, batch = sides_of(op, axes, wide)
        for axis in sorted(batch) if all(sides) else ():
            yield f"{op.name}: batch axis {axis} has a tile of {lanes(block, schedule, axis)}; a dot takes 1"
    yield from pack_violations(block, wide)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
