"""Products of a row and a matrix in a block graph, as one operator, or as multiplication and sum."""

from __future__ import annotations

from collections.abc import Iterator

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
            if factors.kind.scaled_by and len({ops[name].axes for name in factors.inputs}) > 1:
                yield op
