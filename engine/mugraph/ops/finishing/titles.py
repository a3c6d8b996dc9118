"""Names of operators that are no call of the user's: the sum in a softmax, the mean square in a norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mugraph.ir.ops import Kind

_LONGEST = 24
"""A name of more characters is left out of the names that are made of it."""


class Operator(Protocol):
    """An operator of a shared graph; inputs are positions in it."""

    @property
    def kind(self) -> Kind: ...
    @property
    def inputs(self) -> tuple[int, ...]: ...
    @property
    def value(self) -> float: ...
    @property
    def fn(self) -> str: ...


def title_of(op: Operator, graph: Sequence[Operator], titles: Mapping[int, str]) -> str:
    """A name by what the operator does to what; it need not be unique. titles: of the operators before it."""
    below = [graph[i] for i in op.inputs]
    names = [titles[i] for i in op.inputs]
    match op.kind:
        case Kind.SQRT:
            return _root(below[0], graph)
        case Kind.SUM:
            return _sum(below[0], names[0])
        case kind if kind.contracts and all(len(name) == 1 for name in names):
            return "".join(names)
        case Kind.DIV if below[1].kind is Kind.SQRT:
            return "normed"
        case Kind.ADD if any(_is_negated(operand, graph) for operand in below):
            return "difference"
        case Kind.MUL:
            return _product(op, below, names, graph)
        case kind:
            title = kind.title.format(fn=op.fn)
            return _after(names[0], title.removeprefix("_")) if title.startswith("_") else title


def _product(op: Operator, below: Sequence[Operator], names: Sequence[str], graph: Sequence[Operator]) -> str:
    if op.inputs[0] == op.inputs[1]:
        return _after(names[0], "squared")
    for factor, other, name in ((below[0], below[1], names[1]), (below[1], below[0], names[0])):
        if factor.kind is Kind.CONST:
            if factor.value == -1.0:
                return _after(name, "negated")
            if other.kind is Kind.SUM and 0.0 < factor.value < 1.0:
                return "mean_square" if _is_square(graph[other.inputs[0]]) else "mean"
            return _after(name, "scaled")
    return op.kind.title


def _sum(operand: Operator, name: str) -> str:
    if operand.kind.is_exponential:
        return "row_sum"
    return "sum_of_squares" if _is_square(operand) else _after(name, Kind.SUM.title.removeprefix("_"))


def _root(operand: Operator, graph: Sequence[Operator]) -> str:
    """The root of a mean square, with an epsilon or without."""
    inside = [operand, *(graph[i] for i in operand.inputs)] if operand.kind is Kind.ADD else [operand]
    for op in inside:
        if op.kind is Kind.MUL:
            for i in op.inputs:
                if graph[i].kind is Kind.SUM and _is_square(graph[graph[i].inputs[0]]):
                    return "rms"
        if op.kind is Kind.SUM and _is_square(graph[op.inputs[0]]):
            return "length"
    return Kind.SQRT.title


def _is_square(op: Operator) -> bool:
    return op.kind is Kind.MUL and op.inputs[0] == op.inputs[1]


def _is_negated(op: Operator, graph: Sequence[Operator]) -> bool:
    factors = [graph[i] for i in op.inputs]
    return op.kind is Kind.MUL and any(f.kind is Kind.CONST and f.value == -1.0 for f in factors)


def _after(name: str, suffix: str) -> str:
    return suffix if len(name) > _LONGEST else f"{name}_{suffix}"
