"""Loops that a mask ends early: how much of them a block runs.

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
    """The loop over the last of a mask's columns."""

    mask: Op

    def shares(self, schedule: Schedule, sizes: Mapping[str, int]) -> tuple[float, float]:
        """Of the loop's iterations, those that run: in the mean over the blocks, and in the block that runs longest."""
        axis = self.mask.columns[-1]
        tile, size = schedule.loops[axis], sizes[axis]
        rows = prod(sizes[row] for row in self.mask.rows)
        held = schedule.tile(self.mask.rows[-1], rows) if len(self.mask.rows) == 1 else rows
        parts = prod(sizes[column] for column in self.mask.columns[:-1])
        return _shares(rows, held, diagonal(self.mask), parts, size, tile)


@lru_cache(maxsize=4096)
def _shares(rows: int, held: int, offset: int, parts: int, size: int, tile: int) -> tuple[float, float]:
    """held: rows of a block. parts: blocks along the columns, each with `size` of them."""
    every = ceil(size / tile)
    ran: list[int] = []
    for last in range(held, rows + held, held):
        for part in range(parts):
            ran.append(min(every, max(0, ceil((min(last, rows) + offset - part * size) / tile))))
    return max(1, sum(ran)) / (len(ran) * every), max(1, *ran) / every


def ends(block: BlockGraph) -> dict[str, End]:
    """Loop -> what ends it, of loops that only add up products with the mask. (A maximum does not pass over zeros.)"""
    found: dict[str, End] = {}
    for mask in block.ops:
        if mask.kind is Kind.MASK and mask.columns and mask.columns[-1] in block.loop_axes:
            axis = mask.columns[-1]
            gone = _vanishing(mask, block)
            closing = [op for op in block.ops if op.kind is Kind.ACCUM and op.over == (axis,)]
            if all(op.inputs[0] in gone and not op.fn for op in closing):
                found[axis] = End(mask)
    return found


def _vanishing(mask: Op, block: BlockGraph) -> set[str]:
    """Values that are zero where all of the mask is."""
    gone, zero = {mask.name}, Zeros()
    for op in block.ops:
        below = [name in gone for name in op.inputs]
        if any(below) and op.kind is not Kind.STORE and op.kind.meaning(zero, below, op.fn, op.over):
            gone.add(op.name)
    return gone
