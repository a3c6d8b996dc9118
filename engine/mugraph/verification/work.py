"""How much work a test over the fields is, before it is run, in numbers computed: about ten million take a second."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.verification.evaluate import ancestors, arguments_of

_TILE = 400
"""What one operator on one tile costs at least: calls of numpy."""
_DRAWS = 8
"""How often what is under a root is computed until inputs are found of which it is a square."""
_PRODUCT = 1 / 32
"""Of one product that a DOT adds up."""


def work(program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]], sizes: Sizes) -> float:
    """Of one random test at these sizes (of every axis), the tiles being the schedules' own."""
    under = ancestors(program.ops, arguments_of(program.ops, "sqrt"))
    total = _of_graph(program.ops, sizes) + _DRAWS * _of_graph([op for op in program.ops if op.name in under], sizes)
    for block, schedule in kernels:
        total += _of_graph(block.ops, sizes) + _TILE * _tiles(block, schedule, sizes)
    return total


def _of_graph(ops: Sequence[Op], sizes: Sizes) -> float:
    axes = {op.name: frozenset(op.axes) for op in ops}
    total = 0.0
    for op in ops:
        total += op.kind.test_cost * prod(sizes[axis] for axis in op.axes)
        if op.kind.contracts:
            every = frozenset[str]().union(*(axes[name] for name in op.inputs))
            total += _PRODUCT * prod(sizes[axis] for axis in every)
            total += sum(prod(sizes[axis] for axis in axes[name]) for name in op.inputs)
    return total


def _tiles(block: BlockGraph, schedule: Schedule, sizes: Sizes) -> float:
    """Operators times tiles each of them is computed for."""
    counts = {axis: ceil(sizes[axis] / tile) for axis, tile in (*schedule.grid, *schedule.loops.items())}
    varies: dict[str, frozenset[str]] = {}
    total = 0.0
    for op in block.ops:
        if op.kind is Kind.LOAD or op.kind.of_places:
            here = counts.keys() & set(op.axes)
        else:
            here = frozenset[str]().union(*(varies[name] for name in op.inputs))
        total += prod(counts[axis] for axis in here)
        varies[op.name] = frozenset(here) - set(op.over) if op.kind is Kind.ACCUM else frozenset(here)
    return total
