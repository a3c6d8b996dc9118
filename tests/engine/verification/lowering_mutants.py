"""Tensor programs with one thing wrong, as a wrong rule of lowering would make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram


def mutants(program: TensorProgram) -> Iterator[tuple[str, TensorProgram]]:
    """What is wrong, and the program. Axes of every value stay what they are."""
    axes = {op.name: op.axes for op in program.ops}
    for number, op in enumerate(program.ops):
        for what, other in _wrong(op, axes):
            ops = (*program.ops[:number], other, *program.ops[number + 1 :])
            yield f"{what} in {op.name}", replace(program, ops=ops)
        if op.kind.is_elementwise and op.name not in program.outputs:
            for operand in op.inputs:
                if axes[operand] == op.axes:
                    yield f"{op.name} is only {operand}", _renamed(program, op.name, operand)
    yield from _exchanged(program)


def _wrong(op: Op, axes: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, Op]]:
    if op.kind.is_elementwise and len(op.inputs) == 2 and not op.kind.commutes:
        yield "operands exchanged", replace(op, inputs=op.inputs[::-1])
    if op.kind is Kind.ADD:
        yield "a product for a sum", replace(op, kind=Kind.MUL)
    if op.kind is Kind.MUL:
        yield "a sum for a product", replace(op, kind=Kind.ADD)
    if op.kind is Kind.MAX:
        yield "a sum for a maximum", replace(op, kind=Kind.ADD)
    if op.kind is Kind.AMAX:
        yield "a sum for a maximum along an axis", replace(op, kind=Kind.SUM)
    if op.kind is Kind.SUM:
        yield "a maximum for a sum along an axis", replace(op, kind=Kind.AMAX)
    if op.kind is Kind.CONST:
        yield "a number is a thousandth larger", replace(op, value=op.value * 1.001)
        yield "a number of another sign", replace(op, value=-op.value)
        yield "a number that is one more", replace(op, value=op.value + 1.0)
    if op.kind is Kind.UNARY:
        yield "another function", replace(op, fn="tanh" if op.fn != "tanh" else "silu")
    if op.kind is Kind.EXP:
        yield "another function for exp", replace(op, kind=Kind.UNARY, fn="sigmoid")
    if op.kind.of_places:
        yield "places off by one", replace(op, value=op.value + 1)


def _renamed(program: TensorProgram, old: str, new: str) -> TensorProgram:
    """Without the operator `old`, of which `new` takes the place."""
    ops = tuple(
        replace(op, inputs=tuple(new if name == old else name for name in op.inputs))
        for op in program.ops
        if op.name != old
    )
    return replace(program, ops=ops)


def _exchanged(program: TensorProgram) -> Iterator[tuple[str, TensorProgram]]:
    """Two inputs of one shape in each other's place, and two axes of one size in one input."""
    loads = [op for op in program.ops if op.kind is Kind.LOAD]
    for one, two in pairwise(loads):
        if one.axes == two.axes and one.axes:
            exchanged = {one.name: two.name, two.name: one.name}
            ops = tuple(
                op if op.kind is Kind.LOAD else replace(op, inputs=tuple(exchanged.get(n, n) for n in op.inputs))
                for op in program.ops
            )
            yield f"{one.name} and {two.name} exchanged", _in_order(replace(program, ops=ops))
    for number, tensor in enumerate(program.tensors):
        single = [dim for dim in tensor.dims if len(dim) == 1]
        for one, two in pairwise(single):
            if program.sizes[one[0]] == program.sizes[two[0]] and not tensor.windows:
                dims = tuple(two if dim == one else one if dim == two else dim for dim in tensor.dims)
                tensors = (*program.tensors[:number], replace(tensor, dims=dims), *program.tensors[number + 1 :])
                yield f"{tensor.name} turned around", replace(program, tensors=tensors)


def _in_order(program: TensorProgram) -> TensorProgram:
    """Loads first, so that each value comes before its uses."""
    first: Sequence[Op] = [op for op in program.ops if op.kind is Kind.LOAD]
    return replace(program, ops=(*first, *(op for op in program.ops if op.kind is not Kind.LOAD)))
