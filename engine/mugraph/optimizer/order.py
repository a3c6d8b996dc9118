"""Operator order by depth (Mirage §6): threads of a block synchronise only between operators of different depth."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph


def depths(block: BlockGraph) -> dict[str, int]:
    """Value -> length of the longest path to it from a load or constant, by dynamic programming over the graph."""
    depth: dict[str, int] = {}
    for op in block.ops:
        depth[op.name] = 1 + max((depth[name] for name in op.inputs), default=-1)
    return depth


def by_depth(block: BlockGraph) -> BlockGraph:
    """The same graph with its operators in ascending order of depth; equal depths keep their order."""
    depth = depths(block)
    return replace(block, ops=tuple(sorted(block.ops, key=lambda op: depth[op.name])))


def synchronisations(block: BlockGraph) -> int:
    """Barriers the operators need in the order they stand: one before an operator that reads what was computed since
    the last one. Element-wise or not is not looked at: this is the unfused graph, as in the paper."""
    pending: set[str] = set()
    count = 0
    for op in block.ops:
        if op.kind.is_leaf:
            continue
        if pending.intersection(op.inputs):
            count += 1
            pending.clear()
        pending.add(op.name)
    return count
