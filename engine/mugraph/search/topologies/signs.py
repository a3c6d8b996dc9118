"""Where a root may be taken: of values that are nowhere negative while the program's own roots have numbers.

Over the field every residue has a root and `sqrt(x) sqrt(y) = sqrt(x y)` always holds, so that `sqrt(x * x)` and
`sqrt(x) * sqrt(x)` are one value there. Over the reals the second is no number for a negative x. Random real inputs
tell: whatever is negative for one of them gets no root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind, Op
from mugraph.ops.functions.floats import float_unary
from mugraph.search.algebra.field import running_sums

Reals = NDArray[np.float64]

_SAMPLES = 8
"""Draws at once, along the last position of every array."""
_ROUNDING = 1e-9
"""Of the largest element: what counts as zero."""


def draw(
    ops: Sequence[Op], shapes: Mapping[str, tuple[int, ...]], slots: Mapping[str, tuple[int, ...]]
) -> dict[str, Reals] | None:
    """Values of loads, constants, masks and positions, by name, for which the program takes no root of a
    negative number.

    Loads have both signs if the roots are right for some such draw, else they are positive. None if they are right for
    neither, as where a constant is a size that these small arrays do not have.

    shapes: of loads, constants and masks, one position for each slot. slots: of reductions, those they sum over
    """
    random = np.random.default_rng(0)
    drawn: dict[str, Reals] = {}
    loads = [op.name for op in ops if op.kind is Kind.LOAD]
    for op in ops:
        if op.kind is Kind.CONST:
            drawn[op.name] = np.full((*shapes[op.name], 1), op.value)
        elif op.kind is Kind.LOAD or op.kind.of_places:
            drawn[op.name] = random.uniform(0.5, 1.5, (*shapes[op.name], _SAMPLES))
    if not _has_roots(ops, drawn, slots):
        return None
    for name in loads:
        signed = {**drawn, name: random.standard_normal((*shapes[name], _SAMPLES))}
        if _has_roots(ops, signed, slots):
            drawn = signed
    return drawn


class RealArithmetic:
    """The primitives that kinds are made of, on arrays with one position for each slot; `over`: slots."""

    def constant(self, value: float) -> Reals:
        return np.array(value, np.float64)

    def add(self, a: Reals, b: Reals) -> Reals:
        return a + b

    def mul(self, a: Reals, b: Reals) -> Reals:
        return a * b

    def div(self, a: Reals, b: Reals) -> Reals:
        return a / b

    def sqrt(self, a: Reals) -> Reals:
        return np.sqrt(a)

    def exp(self, a: Reals) -> Reals:
        return np.exp(a)

    def unary(self, fn: str, a: Reals) -> Reals:
        return float_unary(fn)(a)

    def opaque(self, kind: Kind, *operands: Reals) -> Reals:
        assert kind.opaque is not None
        return kind.opaque.numbers(*operands)

    def maximum(self, a: Reals, b: Reals) -> Reals:
        return np.maximum(a, b)

    def amax(self, a: Reals, over: tuple[int, ...]) -> Reals:
        return a.max(axis=over, keepdims=True)

    def sum(self, a: Reals, over: tuple[int, ...]) -> Reals:
        return a.sum(axis=over, keepdims=True)

    def dot(self, a: Reals, b: Reals, over: tuple[int, ...]) -> Reals:
        return (a * b).sum(axis=over, keepdims=True)

    def running(self, a: Reals, over: tuple[int, ...], backwards: bool) -> Reals:
        return running_sums(a, over, backwards)


REALS = RealArithmetic()


class _NoRoot(Exception):
    """Of a negative number."""


class _Checked(RealArithmetic):
    def sqrt(self, a: Reals) -> Reals:
        if has_negative(a):
            raise _NoRoot
        return super().sqrt(a)


def has_negative(values: Reals) -> bool:
    """Is an element less than zero, by more than rounding?"""
    finite = values[np.isfinite(values)]
    return bool(finite.size) and bool(finite.min() < -_ROUNDING * abs(finite).max())


def _has_roots(ops: Sequence[Op], leaves: Mapping[str, Reals], slots: Mapping[str, tuple[int, ...]]) -> bool:
    values, checked = dict(leaves), _Checked()
    for op in ops:
        if op.name not in values:
            try:
                with np.errstate(all="ignore"):
                    inputs = [values[i] for i in op.inputs]
                    values[op.name] = op.kind.meaning(checked, inputs, op.fn, slots.get(op.name, ()))
            except _NoRoot:
                return False
    return True
