"""Maxima taken off before an exponential, as in a softmax written by hand: `exp(x - x.amax(-1, keepdim=True))`.

Where no output changes when exp(x) is multiplied by a number for each row, because it is divided by a sum of the same
exponentials, the maximum is there to keep numbers in range, and the algebra is better off without it: the program then
is the softmax that it is, and the code generator takes the row's maximum off again in every kernel, online where the
row is looped over. A maximum that an output does depend on stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from mugraph.ir.ops import Kind
from mugraph.kinds import naming
from mugraph.ops.functions.degrees import NoDegree, PositiveDegrees

_DEGREES = PositiveDegrees()


class Operator(naming.Operator, Protocol):
    """With the axes that it reduces, and those of its result."""

    @property
    def over(self) -> tuple[int, ...]: ...
    @property
    def axes(self) -> frozenset[int]: ...


def idle_shifts(graph: Sequence[Operator], outputs: Collection[int]) -> dict[int, int]:
    """Position of a sum -> its operand that may take its place: the other one is a shift that no output depends on."""
    live = set(outputs)
    for i in reversed(range(len(graph))):
        if i in live:
            live.update(graph[i].inputs)
    maxima = _of_maxima(graph)
    users = [sum(i in graph[user].inputs for user in live) + (i in outputs) for i in range(len(graph))]
    found: dict[int, int] = {}
    for e in sorted(live):
        if graph[e].kind.is_exponential:
            for total in _sums(graph, graph[e].inputs[0], users):
                for kept, shift in (graph[total].inputs, graph[total].inputs[::-1]):
                    rows = graph[shift].axes
                    if shift in maxima and rows < graph[e].axes and _is_invariant(graph, live, outputs, e, rows):
                        found[total] = kept
                        break
    return found


def _of_maxima(graph: Sequence[Operator]) -> set[int]:
    """Maxima along axes, also times constants."""
    found: set[int] = set()
    for i, op in enumerate(graph):
        scaled = [op.inputs[1 - at] for at in op.kind.scaled_by if graph[op.inputs[at]].kind is Kind.CONST]
        if (op.kind.chooses and op.kind.reduces) or found.intersection(scaled):
            found.add(i)
    return found


def _sums(graph: Sequence[Operator], i: int, users: Sequence[int]) -> list[int]:
    """The sums in an exponent, through scaling by constants and other sums, that nobody else uses."""
    op = graph[i]
    if users[i] != 1:
        return []
    if op.kind.shifted_by:
        return [i, *(total for j in op.inputs for total in _sums(graph, j, users))]
    for at in op.kind.scaled_by:
        if graph[op.inputs[at]].kind is Kind.CONST:
            return _sums(graph, op.inputs[1 - at], users)
    return []


def _is_invariant(
    graph: Sequence[Operator], live: Collection[int], outputs: Collection[int], e: int, rows: frozenset[int]
) -> bool:
    """Do the outputs stay what they are when the exponential is multiplied by a positive number for each row?

    A value that is multiplied by that number's d-th power is of degree d; outputs must be of degree 0.
    """
    degrees: dict[int, float] = {}
    for i in sorted(live):
        op = graph[i]
        below = [degrees[j] for j in op.inputs]
        try:
            degree = 1.0 if i == e else op.kind.meaning(_DEGREES, below, op.fn, op.over) if below else 0.0
        except NoDegree:
            return False
        # A reduction over rows mixes numbers.
        if any(below) and rows.intersection(op.over):
            return False
        degrees[i] = degree
    return not any(degrees[i] for i in outputs)
