"""Constants that hide a triangle of a matrix, as masks of ones and zeros: torch.tril and torch.triu, and what is made
of them.

A tensor of two values, one below a diagonal and one above it, is `above + (below - above) * mask`; one with minus
infinity in it hides what it is added to (Primitives.hide). Tracing has looked at the tensors and says which are such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from mugraph.ir.calls import Corner, Ref, Triangle
from mugraph.ir.dtypes import largest
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.nodes import Node, conjuncts, constant_factor, factors, terms
from mugraph.ops.algebra.refusals import NotLowerable

LOW = -1e9
"""A number so low counts as minus infinity, as people who write it mean it: no other logit is near it."""


def is_low(value: float | None, dtype: str) -> bool:
    """Does the number hide whatever it is added to? None is minus infinity."""
    return value is None or value <= max(LOW, -largest(dtype))


class Masks:
    """What a builder asks about masks."""

    def __init__(self, builder: Building) -> None:
        self._b = builder

    def value(self, triangle: Triangle, dtype: str, dims: AtomDims) -> Node:
        """A constant tensor at these axes."""
        b = self._b
        below, above = triangle.below, triangle.above
        if triangle.is_uniform:
            if is_low(below, dtype) or below is None:
                raise NotLowerable("a tensor of nothing but minus infinity is outside the fragment")
            return b.const(below)
        lower = self._triangle(triangle, dims)
        if is_low(above, dtype):
            return b.hide(b.const(self._finite(below, dtype)), lower, self._number(above))
        if is_low(below, dtype):
            return b.hide(b.const(self._finite(above, dtype)), self.complement(lower), self._number(below))
        assert below is not None and above is not None  # noqa: PT018
        if below == 0.0:
            return b.mul(b.const(above), self.complement(lower))
        return b.add(b.const(above), b.mul(b.const(below - above), lower))

    def _number(self, value: float | None) -> Node | None:
        return None if value is None else self._b.const(value)

    def truth(self, ref: Ref) -> Triangle:
        """Where a condition holds: 1 or 0 on each side. Raises NotLowerable for what is no constant triangle."""
        triangle = self._b.values[ref.value].triangle
        if triangle is None or triangle.is_uniform:
            raise NotLowerable("a condition that is no constant triangle is outside the fragment")
        return triangle

    def where(self, ref: Ref, dims: AtomDims, holds: bool = True) -> Node:
        """1 where the condition holds (or, holds=False, where it does not), broadcast to these axes."""
        triangle = self.truth(ref)
        lower = self._triangle(triangle, self._b.trim(self._b.shape(ref), dims))
        return lower if bool(triangle.below) is holds else self.complement(lower)

    def complement(self, mask: Node) -> Node:
        """1 where the mask is 0: c > r + k is r <= c - k - 1."""
        if mask.kind is Kind.CONST:
            return self._b.const(1.0 - mask.value)
        rows, columns = mask.dims
        return self._b.mask(columns, rows, -int(mask.value) - 1, cast("Corner", mask.fn))

    def opposite(self, condition: Node) -> Node:
        """1 where the condition, which is 1 or 0, is 0."""
        if condition.kind in (Kind.MASK, Kind.CONST):
            return self.complement(condition)
        for one, other in terms(condition):  # it is the opposite of one
            scaled = constant_factor(other)
            if one.kind is Kind.CONST and one.value == 1.0 and scaled is not None and scaled[0] == -1.0:
                return scaled[1]
        if condition.kind.chooses and not condition.kind.reduces:  # of both: a or b
            one, other = map(self.opposite, condition.inputs)
            if conjuncts(one) and conjuncts(other):
                return self._b.mul(one, other)
        return self._b.sub(self._b.const(1.0), condition)

    def refuse_empty(self, a: Node, over: AtomDim) -> None:
        """Exponentials with a row that is masked as a whole have no softmax."""
        for keep, other in factors(a):
            if other.kind.is_exponential and self._has_empty(conjuncts(keep), frozenset(over)):
                raise NotLowerable("masks hide all of a row, whose softmax is undefined")

    def _has_empty(self, masks: Sequence[Node], over: frozenset[int]) -> bool:
        """May the masks together hide all of a row? over: what it runs along"""
        atoms = self._b.atoms
        over = frozenset(atoms.resolve(tuple(over)))
        sides = [(mask, *atoms.resolve_dims(mask.dims)) for mask in masks]
        along = {side for _, *both in sides for side in both if side and over.issuperset(side)}
        across = {side for _, *both in sides for side in both if side and not over.intersection(side)}
        met = {side for _, *both in sides for side in both if side}
        if not along:
            return False
        if len(along) > 1 or len(across) > 1 or met - along - across:
            return len(masks) > 1 or bool(met - along - across)  # of one mask along several axes nothing is hidden
        (columns,), rows = along, next(iter(across), ())
        place, length = np.arange(atoms.elements(rows)), atoms.elements(columns)
        low, high = np.zeros_like(place), np.full_like(place, length - 1)  # the first and the last place that is seen
        for mask, own, other in sides:
            number = int(mask.value)
            if other == columns:
                high = np.minimum(high, (place if own else 0) + number)
            elif own == columns:
                low = np.maximum(low, (place if other else 0) - number)
            else:  # it hides whole rows
                return True
        return bool((low > high).any())

    def _triangle(self, triangle: Triangle, dims: AtomDims) -> Node:
        if len(dims) < 2:
            raise NotLowerable("a mask needs rows and columns")
        return self._b.mask(dims[-2], dims[-1], triangle.diagonal, triangle.corner)

    @staticmethod
    def _finite(value: float | None, dtype: str) -> float:
        if value is None or is_low(value, dtype):
            raise NotLowerable("a tensor of nothing but minus infinity is outside the fragment")
        return value
