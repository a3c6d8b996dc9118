"""Loops that masks end early, or begin late: how much of them a block runs.

The kernel skips tiles in which a mask hides everything (codegen.tile.masks); the estimate must know, or a causal loop
would look twice as long as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.masks import diagonal
from mugraph.ir.ops import Kind, Op
from mugraph.kinds.zeros import Zeros


@dataclass(frozen=True)
class End:
    """Of a loop. last: the mask with the loop's axis as the last of its columns, which ends it. first: the one with it
    as the last of its rows, which a loop over a window begins with."""

    last: Op | None = None
    first: Op | None = None

    def shares(self, schedule: Schedule, sizes: Mapping[str, int]) -> tuple[float, float]:
        """Of the loop's iterations, those that run: in the mean over the blocks, and in the block that runs longest."""
        looped, across = _sides(self)
        tile, size = schedule.loops[looped[-1]], sizes[looped[-1]]
        rows = prod(sizes[row] for row in across)
        held = schedule.tile(across[-1], rows) if len(across) == 1 else rows
        parts = prod(sizes[column] for column in looped[:-1])
        last, first = (None if mask is None else diagonal(mask) for mask in (self.last, self.first))
        return _shares(rows, held, last, first, parts, size, tile)


def _sides(end: End) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The axes that are looped over, the loop's own last, and the others of its masks."""
    if end.last is not None:
        return end.last.columns, end.last.rows
    assert end.first is not None
    return end.first.rows, end.first.columns


@lru_cache(maxsize=4096)
def _shares(
    rows: int, held: int, last: int | None, first: int | None, parts: int, size: int, tile: int
) -> tuple[float, float]:
    """held: rows of a block. last, first: diagonals of the masks. parts: blocks along the columns, each with `size` of
    them."""
    every = ceil(size / tile)
    ran: list[int] = []
    for row in range(0, rows, held):
        for part in range(parts):
            end, start = every, 0
            if last is not None:
                end = min(every, max(0, ceil((min(row + held, rows) + last - part * size) / tile)))
            if first is not None:
                start = max(0, (row - first - part * size) // tile)
            ran.append(max(0, end - start))
    return max(1, sum(ran)) / (len(ran) * every), max(1, *ran) / every


def ends(block: BlockGraph) -> dict[str, End]:
    """Loop -> what ends it, of loops that only add up products with the masks. (A maximum does not pass over zeros.)"""
    found: dict[str, End] = {}
    carried = {axis for op in block.ops if op.kind.scans for axis in op.over}  # through all of their loops
    for mask in (op for op in block.ops if op.kind is Kind.MASK):
        gone = _vanishing(mask, block)
        for side, ending in ((mask.columns, End(last=mask)), (mask.rows, End(first=mask))):
            axis = side[-1] if side else ""
            closing = [op for op in block.ops if op.kind is Kind.ACCUM and op.over == (axis,)]
            if (
                axis in block.loop_axes
                and axis not in carried
                and all(op.inputs[0] in gone and not op.fn for op in closing)
            ):
                found[axis] = _joined(found.get(axis), ending)
    return found


def _joined(one: End | None, other: End) -> End:
    """Both, where they are of the same axes."""
    if one is None or _sides(one) != _sides(other):
        return one or other
    return End(one.last or other.last, one.first or other.first)


def _vanishing(mask: Op, block: BlockGraph) -> set[str]:
    """Values that are zero where all of the mask is."""
    gone, zero = {mask.name}, Zeros()
    for op in block.ops:
        below = [name in gone for name in op.inputs]
        if any(below) and op.kind is not Kind.STORE and op.kind.meaning(zero, below, op.fn, op.over):
            gone.add(op.name)
    return gone
