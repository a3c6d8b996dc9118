"""Products of a row and a matrix in a block graph, as one operator, or as multiplication and sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op


def row_sums(block: BlockGraph) -> Iterator[Op]:
    """The operators that sum. (Products of two matrices are among them: tiles.py knows those.)"""
    ops = {op.name: op for op in block.ops}
    for op in block.ops:
        if op.kind.contracts:
            yield op
        elif op.kind.is_plain_sum:
            factors = ops[op.inputs[0]]
            factors = ops[factors.inputs[0]] if factors.kind is Kind.ACCUM else factors
            if _is_of_two(ops, factors, frozenset(op.over)):
                yield op


def _is_of_two(ops: Mapping[str, Op], op: Op, over: frozenset[str]) -> bool:
    """Are there two factors that lie along the axes that are summed, one of them along others as well? (A mean's
    constant is none, and what multiplies each sum as a whole is none.)"""
    if not op.kind.scaled_by:
        return False
    summed = [one for one in (ops[name] for name in op.inputs) if over.intersection(one.axes)]
    if len(summed) == 1:
        return _is_of_two(ops, summed[0], over)
    return len({one.axes for one in summed}) > 1
