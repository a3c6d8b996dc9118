"""Small sizes for graphs in which constants belong to the sizes: 1/64 in the mean of 64 elements.

At a small size the constant would be that of no mean any more. So the sums are weighted, not the constants changed: of
an axis of 64 elements that has become one of 4, a sum counts each element 16 times. That is the sum at full size of
inputs that repeat, and for a size that does not divide it is the same with a weight that is no whole number. What holds
for sums that are linear and of a total weight of 64 holds for the sum of 64 elements.

In a block graph a loop divides the weight of its axis between a tile's sum and the accumulator, in a proportion that
stands for tiles of any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.names import take, underscored
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.kinds import accumulator, kind_named

_OF_A_TILE = Fraction(5, 7)
"""The part of an axis' weight that a tile's sum has: any will do that no size leads to."""


def belongs_to_sizes(*graphs: Sequence[Op]) -> bool:
    """May a constant of the graphs belong to the size of something that is summed?"""
    return any(op.kind is Kind.CONST and abs(op.value) not in (0.0, 1.0) for ops in graphs for op in ops) and any(
        _repeated(op) for ops in graphs for op in ops
    )


def weighted(program: TensorProgram, full: Sizes) -> TensorProgram:
    """The program, at small sizes, with sums as at full size."""
    weights = {axis: Fraction(full[axis], size) for axis, size in program.sizes.items()}
    ops, renamed = _weighted(program.ops, weights, {})
    return replace(program, ops=ops, outputs={renamed.get(n, n): tensor for n, tensor in program.outputs.items()})


def weighted_block(block: BlockGraph, full: Sizes) -> BlockGraph:
    """As weighted, of a block graph."""
    looped = set(block.loop_axes)
    weights = {axis: Fraction(full[axis], size) for axis, size in block.sizes.items()}
    tiles = {axis: _OF_A_TILE if axis in looped else weight for axis, weight in weights.items()}
    loops = {axis: weights[axis] / _OF_A_TILE for axis in looped}
    return replace(block, ops=_weighted(block.ops, tiles, loops)[0])


def summing_as_at_full_size(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    full: TensorProgram,
    full_kernels: Sequence[tuple[BlockGraph, Schedule]],
) -> tuple[TensorProgram, list[tuple[BlockGraph, Schedule]]]:
    """A program and its kernels at small sizes; with weights where a constant of theirs may belong to full sizes.

    A library's kernel has no place for weights: with one among the kernels none of them has any.
    """
    blocks, own = [block for block, _ in kernels], [block for block, _ in full_kernels]
    if not belongs_to_sizes(program.ops, *(block.ops for block in blocks)) or any(map(library_call, own)):
        return program, list(kernels)
    weighing = zip(kernels, own, strict=True)
    return weighted(program, full.sizes), [(weighted_block(one, at.sizes), s) for (one, s), at in weighing]


def _weighted(
    ops: Sequence[Op], tiles: Mapping[str, Fraction], loops: Mapping[str, Fraction]
) -> tuple[tuple[Op, ...], Mapping[str, str]]:
    """The operators, and the new names of values that are weighted."""
    found: list[Op] = []
    renamed: dict[str, str] = {}
    taken = {op.name for op in ops}
    for op in ops:
        found.append(replace(op, inputs=tuple(renamed.get(name, name) for name in op.inputs)))
        weight = Fraction(1)
        if _repeated(op):
            of = tiles if op.kind.adds else loops
            weight = prod((of.get(axis, weight) for axis in op.over), start=weight)
        if weight != 1:
            factor, product = (take(underscored(f"{op.name}_{role}"), taken) for role in ("weight", "weighted"))
            found.append(Op(factor, Kind.CONST, value=float(weight)))
            found.append(Op(product, kind_named(_repeated(op)), (op.name, factor), op.axes))
            renamed[op.name] = product
    return tuple(found), renamed


def _repeated(op: Op) -> str:
    """The kind that joins n equal elements of what a sum adds up; "" for what is no sum."""
    parts = accumulator(op.fn) if op.kind is Kind.ACCUM else op.kind.accumulator
    return parts.repeated if parts is not None else ""
