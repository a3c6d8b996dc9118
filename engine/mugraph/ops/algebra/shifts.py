"""Maxima taken off before an exponential, as in a softmax written by hand: `exp(x - x.amax(-1, keepdim=True))`.

Where no output changes when exp(x) is multiplied by a number for each row, because it is divided by a sum of the same
exponentials, the maximum is there to keep numbers in range, and the algebra is better off without it: the program then
is the softmax that it is, and the code generator takes the row's maximum off again in every kernel, online where the
row is looped over. So it is where the maximum is added again to the logarithm of such a sum, as in a log-sum-exp. A
maximum that an output does depend on stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import isclose
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
    """Position of a sum -> its operand that may take its place: the other one is a shift that no output depends on, or
    what makes up for one."""
    live = set(outputs)
    for i in reversed(range(len(graph))):
        if i in live:
            live.update(graph[i].inputs)
    maxima = _of_maxima(graph)
    read = Counter(value for user in live for value in {*graph[user].inputs})
    users = [read[i] + (i in outputs) for i in range(len(graph))]
    found: dict[int, int] = {}
    for e in sorted(live):
        if graph[e].kind.is_exponential:
            for total, factor in _sums(graph, graph[e].inputs[0], users):
                for kept, shift in (graph[total].inputs, graph[total].inputs[::-1]):
                    if shift not in maxima or not graph[shift].axes < graph[e].axes:
                        continue
                    made_up = _Without(graph, maxima, e, shift, factor).made_up(sorted(live), outputs)
                    if made_up is not None:
                        found |= {total: kept, **made_up}
                        break
    return found


def _of_maxima(graph: Sequence[Operator]) -> dict[int, tuple[int, float]]:
    """Maxima along axes, also times constants: each with the maximum and the constant."""
    found: dict[int, tuple[int, float]] = {}
    for i, op in enumerate(graph):
        if op.kind.chooses and op.kind.reduces:
            found[i] = i, 1.0
        for factor, other in _scaled(graph, op):
            if other in found:
                maximum, before = found[other]
                found[i] = maximum, factor * before
    return found


def _scaled(graph: Sequence[Operator], op: Operator) -> list[tuple[float, int]]:
    """A constant and what it multiplies."""
    return [
        (graph[op.inputs[at]].value, op.inputs[1 - at])
        for at in op.kind.scaled_by
        if graph[op.inputs[at]].kind is Kind.CONST
    ]


def _sums(graph: Sequence[Operator], i: int, users: Sequence[int], factor: float = 1.0) -> list[tuple[int, float]]:
    """The sums in an exponent that nobody else uses, each with the constant by which it is scaled there."""
    op = graph[i]
    if users[i] != 1:
        return []
    if op.kind.shifted_by:
        return [(i, factor), *(found for j in op.inputs for found in _sums(graph, j, users, factor))]
    for constant, other in _scaled(graph, op):
        return _sums(graph, other, users, factor * constant)
    return []


class _Without:
    """The graph without a shift in the argument of an exponential.

    Each exponential is then multiplied by a positive number of its row, exp(-factor * shift). A value that is
    multiplied by that number's d-th power is of degree d. The logarithm of such a value has its own logarithm added, d
    times: that is its offset.

    maxima: position -> the maximum that it is, and times what. e: the exponential. factor: of the shift in its argument
    """

    def __init__(
        self, graph: Sequence[Operator], maxima: Mapping[int, tuple[int, float]], e: int, shift: int, factor: float
    ) -> None:
        self._graph, self._maxima, self._e = graph, maxima, e
        self._rows = graph[shift].axes
        self._maximum, scale = maxima[shift]
        self._scale = factor * scale
        self._degrees: dict[int, float] = {}
        self._offsets: dict[int, float] = {}

    def made_up(self, live: Sequence[int], outputs: Collection[int]) -> dict[int, int] | None:
        """Sums that add to a logarithm what the shift has taken off, and the logarithm; None where an output does not
        stay what it is: of degree 0, and without an offset."""
        found: dict[int, int] = {}
        for i in live:
            op = self._graph[i]
            # A reduction over rows mixes numbers.
            changes = [j for j in op.inputs if self._degrees[j] or self._offsets[j]]
            if changes and self._rows.intersection(op.over):
                return None
            kept = self._kept(op)
            if kept is not None:
                found[i] = kept
                self._degrees[i] = self._offsets[i] = 0.0
            elif not self._follows(i):
                return None
        return None if any(self._degrees[i] or self._offsets[i] for i in outputs) else found

    def _kept(self, op: Operator) -> int | None:
        """Of a sum that makes up for the shift, the operand that stays."""
        if not op.kind.shifted_by or any(self._degrees[j] for j in op.inputs):
            return None
        for one, other in (op.inputs, op.inputs[::-1]):
            maximum, factor = self._maxima.get(other, (-1, 0.0))
            is_it = maximum == self._maximum and isclose(factor, -self._offsets[one] * self._scale)
            if self._offsets[one] and is_it and self._graph[one].axes == op.axes:
                return one
        return None

    def _follows(self, i: int) -> bool:
        """Notes degree and offset of a value; False where it has none."""
        op = self._graph[i]
        degrees, offsets = ([known[j] for j in op.inputs] for known in (self._degrees, self._offsets))
        self._degrees[i] = self._offsets[i] = 0.0
        if i == self._e:
            self._degrees[i] = 1.0
            return not any((*degrees, *offsets))
        if any(offsets):
            return not any(degrees) and self._adds(i)
        if op.kind.opaque is not None and op.kind.opaque.undoes_exp:
            self._offsets[i] = degrees[0]
            return True
        try:
            self._degrees[i] = op.kind.meaning(_DEGREES, degrees, op.fn, op.over) if degrees else 0.0
        except NoDegree:
            return False
        return True

    def _adds(self, i: int) -> bool:
        op = self._graph[i]
        if op.kind.shifted_by:
            self._offsets[i] = sum(self._offsets[j] for j in op.inputs)
            return True
        for factor, other in _scaled(self._graph, op):
            self._offsets[i] = factor * self._offsets[other]
            return True
        return False
