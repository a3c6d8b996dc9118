"""Wrong variants of right block graphs: each changes one thing a search or a compiler could get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import LARGEST, REDUCING, Kind, Op


def mutants(block: BlockGraph) -> Iterator[tuple[str, BlockGraph]]:
    """(what was changed, graph). Axes are worked out again after each change, so that most mutants are well formed."""
    for position, op in enumerate(block.ops):
        for what, changed in (*_in_place(block, op), *_bypassed(op)):
            ops = [*block.ops[:position], *changed, *block.ops[position + 1 :]]
            yield f"{what} {op.name}", replace(block, ops=retyped(ops, block))
        if op.kind is Kind.ACCUM:
            yield f"accumulate {op.name} behind its users", _late_accumulator(block, op)


def _in_place(block: BlockGraph, op: Op) -> Iterator[tuple[str, list[Op]]]:
    match op.kind:
        case Kind.DIV:
            yield "swap operands of", [replace(op, inputs=op.inputs[::-1])]
            yield "multiply in place of", [replace(op, kind=Kind.MUL)]
        case Kind.ADD:
            yield "multiply in place of", [replace(op, kind=Kind.MUL)]
        case Kind.MUL:
            yield "add in place of", [replace(op, kind=Kind.ADD)]
            if op.inputs[0] != op.inputs[1]:
                yield "square in place of", [replace(op, inputs=(op.inputs[0], op.inputs[0]))]
        case Kind.CONST:
            yield "change the constant", [replace(op, value=op.value * 2)]
            yield "negate the constant", [replace(op, value=-op.value)]
        case Kind.UNARY:
            yield "another function in", [replace(op, fn="sigmoid")]
        case Kind.MAX:
            yield "add in place of", [replace(op, kind=Kind.ADD)]
        case Kind.ACCUM:
            yield "add up in" if op.fn else "keep the largest in", [replace(op, fn="" if op.fn else LARGEST)]
        case Kind.SUM | Kind.AMAX | Kind.DOT:
            if op.kind is Kind.AMAX:
                yield "sum in place of", [replace(op, kind=Kind.SUM)]
            for axis in block.sizes:
                if axis not in op.over:
                    yield f"reduce {axis} in", [replace(op, over=(axis,))]
        case Kind.LOAD:
            for tensor in block.inputs:
                if tensor.name != op.tensor:
                    yield f"load {tensor.name} in", [replace(op, tensor=tensor.name)]
        case _:
            pass


def _bypassed(op: Op) -> Iterator[tuple[str, list[Op]]]:
    """Drop the operator: its users read one of its operands. The name stays, as a product with 1."""
    if op.kind in (Kind.STORE, Kind.LOAD, Kind.CONST):
        return
    for operand in dict.fromkeys(op.inputs):
        one = Op(f"one_{op.name}", Kind.CONST, value=1.0)
        yield f"pass {operand} through", [one, Op(op.name, Kind.MUL, (operand, one.name))]


def _late_accumulator(block: BlockGraph, accumulator: Op) -> BlockGraph:
    """Move an operator across the loop: the value is used in the loop, and what is computed of it is accumulated."""
    source, loop = accumulator.inputs[0], accumulator.over
    ops: list[Op] = []
    for op in block.ops:
        if op.name == accumulator.name:
            continue
        inputs = tuple(source if name == accumulator.name else name for name in op.inputs)
        if op.kind is Kind.STORE and _depends(block, op.inputs[0], accumulator.name):
            ops.append(Op("late", Kind.ACCUM, inputs, (), loop))
            inputs = ("late",)
        ops.append(replace(op, inputs=inputs))
    return replace(block, ops=retyped(ops, block))


def _depends(block: BlockGraph, value: str, ancestor: str) -> bool:
    needed = {value}
    for op in reversed(block.ops):
        if op.name in needed:
            needed.update(op.inputs)
    return ancestor in needed


def retyped(ops: list[Op], block: BlockGraph) -> tuple[Op, ...]:
    """Axes of every value worked out again from the loads down."""
    axes: dict[str, frozenset[str]] = {}
    result: list[Op] = []
    for op in ops:
        if op.kind is Kind.LOAD:
            here = frozenset(block.tensor(op.tensor).axes)
        else:
            here = frozenset[str]().union(*(axes.get(name, frozenset()) for name in op.inputs))
            if op.kind in REDUCING:
                here = here.difference(op.over)
        axes[op.name] = here
        result.append(replace(op, axes=tuple(sorted(here))))
    return tuple(result)
