"""What becomes of each axis: partitioned over the grid, walked by a loop, or whole in every block."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import Rejected

MAX_TILE = 1 << 20
"""Elements Triton allows in one tensor of a program."""
DOT_SIDE = 16
"""Least extent of each side of `tl.dot` on every device and Triton version we support."""


class Role(StrEnum):
    GRID = "grid"
    LOOP = "loop"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class AxisPlan:
    """One axis of the kernel.

    size:  elements in all
    block: extent of the tile, a power of two (1: the axis is a scalar index)
    count: thread blocks along it, or iterations of its loop (1 when whole)
    dynamic: its size is an argument of the kernel, and at most `size`; `count` is of the largest
    split, part: of a loop over one part of it: the axis of the grid that says which, and the elements of one
    """

    name: str
    size: int
    role: Role
    block: int
    count: int
    dynamic: bool = False
    split: str = ""
    part: int = 0

    @property
    def wide(self) -> bool:
        """It is a dimension of the tile, not a scalar index."""
        return self.block > 1

    @property
    def padded(self) -> bool:
        """Some lanes of some tile lie beyond the axis's end."""
        return self.wide and (self.dynamic or self.block * self.count != self.size)


Plan = Mapping[str, AxisPlan]


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << (n - 1).bit_length()


def plan_axes(
    block: BlockGraph, schedule: Schedule, dynamic: Collection[str] = (), divided: Mapping[str, str] | None = None
) -> dict[str, AxisPlan]:
    """One entry per axis larger than 1: axes of size 1 do not exist in a kernel.

    dynamic: axes whose size is an argument: in the grid they stay, whatever the tile, so that one text serves all tiles
    divided: a looped axis whose parts are spread over the grid -> the axis that says which part

    Raises Rejected for a tile that is no power of two, and for an axis that is both in the grid and in a loop.
    """
    grid = dict(schedule.grid)
    plan: dict[str, AxisPlan] = {}
    for axis, size in block.sizes.items():
        if size < 1:
            raise Rejected(f"axis {axis} is empty.")
        if size == 1:
            continue
        looped = axis in block.loop_axes
        if looped and axis in grid:
            raise Rejected(f"axis {axis} is both in the grid and looped; a split reduction needs a second kernel.")
        if looped and axis not in schedule.loops:
            raise Rejected(f"the schedule gives no tile for the loop over {axis}.")
        tile = schedule.tile(axis, size) if looped or axis in grid else size
        if divided and axis in divided:
            own = axis in dynamic, divided[axis], schedule.part
            plan[axis] = AxisPlan(axis, size, Role.LOOP, tile, -(-size // tile), *own)
        elif axis in dynamic and axis in grid:
            tile = power_of_two(tile)
            plan[axis] = AxisPlan(axis, size, Role.GRID, tile, -(-size // tile), True)
        else:
            plan[axis] = replace(_axis(axis, size, tile, looped), dynamic=axis in dynamic)
    return plan


def widen(plan: Plan, dims: Iterable[Dim]) -> dict[str, AxisPlan]:
    """Give each of `dims` at least the extent a dot needs; its outermost axis takes what is missing."""
    widened = dict(plan)
    for dim in dims:
        first = widened[dim.axes[0]]
        missing = DOT_SIDE // prod(widened[axis].block for axis in dim.axes)
        if missing <= 1:
            continue
        block = first.block * missing
        if first.split or first.role is Role.WHOLE:
            widened[first.name] = replace(first, block=block)
        elif first.dynamic and first.role is Role.GRID:
            widened[first.name] = replace(first, block=block, count=-(-first.size // block))
        else:
            wider = _axis(first.name, first.size, block, first.role is Role.LOOP)
            widened[first.name] = replace(wider, dynamic=first.dynamic)
            if widened[first.name].block < block:  # the larger tile now holds all of the axis
                widened[first.name] = replace(widened[first.name], block=block)
    return widened


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of the kernel's tiles: one wide axis, or several decoded from one index by // and %."""

    axes: tuple[str, ...]

    @property
    def name(self) -> str:
        return "_".join(self.axes)

    def extent(self, plan: Plan) -> int:
        return prod(plan[axis].block for axis in self.axes)

    def padded(self, plan: Plan) -> bool:
        return any(plan[axis].padded for axis in self.axes)


def _axis(name: str, size: int, tile: int, looped: bool) -> AxisPlan:
    if tile >= size:
        return AxisPlan(name, size, Role.WHOLE, power_of_two(size), 1)
    if tile < 1 or tile != power_of_two(tile):
        raise Rejected(f"the tile of axis {name} is {tile}, which is no power of two.")
    return AxisPlan(name, size, Role.LOOP if looped else Role.GRID, tile, -(-size // tile))
