"""Sums over a looped axis in the order that a split takes: each tile is added up, then tile after tile.

A topology may as well accumulate tile over tile and add up the last one, which takes one exchange in place of many.
What one part of the loop hands to another is then a whole tile, and a split has no use for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mugraph.ir.block import BlockGraph
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op


def added_first(block: BlockGraph, axis: str) -> BlockGraph:
    """The block graph with each sum over `axis` of an accumulated tile as the accumulated sum of a tile."""
    tiles = {op.name: op for op in block.ops if op.kind is Kind.ACCUM and op.over == (axis,) and axis in op.axes}
    tiles = {name: op for name, op in tiles.items() if not op.fn and _is_summed(block, name, axis)}
    if not tiles:
        return block
    return replace(block, ops=tuple(_turned(block, tiles)))


def _is_summed(block: BlockGraph, name: str, axis: str) -> bool:
    users = [op for op in block.ops if name in op.inputs]
    return bool(users) and all(op.kind.is_plain_sum and axis in op.over for op in users)


def _turned(block: BlockGraph, tiles: dict[str, Op]) -> Iterator[Op]:
    taken = {*(tensor.name for tensor in block.tensors), *(op.name for op in block.ops)}
    for op in block.ops:
        if op.name in tiles:
            continue
        tile = tiles.get(op.inputs[0]) if op.kind.is_plain_sum else None
        if tile is None:
            yield op
            continue
        part = replace(op, name=take(numbered(f"{op.name}_part"), taken), inputs=tile.inputs)
        yield part
        yield replace(tile, name=op.name, inputs=(part.name,), axes=op.axes)
