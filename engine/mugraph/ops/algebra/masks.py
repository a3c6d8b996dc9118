"""Constants that hide a triangle of a matrix, as masks of ones and zeros: torch.tril and torch.triu, and what is made
of them.

A tensor of two values, one below a diagonal and one above it, is `above + (below - above) * mask`; one with minus
infinity in it hides what it is added to (Primitives.hide). Tracing has looked at the tensors and says which are such.
"""

from __future__ import annotations

from mugraph.ir.calls import Ref, Triangle
from mugraph.ir.dtypes import largest
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.nodes import Node, factors
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
            return b.hide(b.const(self._finite(below, dtype)), lower)
        if is_low(below, dtype):
            return b.hide(b.const(self._finite(above, dtype)), self.complement(lower))
        assert below is not None and above is not None  # noqa: PT018
        if below == 0.0:
            return b.mul(b.const(above), self.complement(lower))
        return b.add(b.const(above), b.mul(b.const(below - above), lower))

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
        return self._b.mask(columns, rows, -int(mask.value) - 1)

    def refuse_empty(self, a: Node, over: AtomDim) -> None:
        """Exponentials with a row that is masked as a whole have no softmax."""
        for mask, other in factors(a):
            if mask.kind is Kind.MASK and other.kind.is_exponential and self._has_empty(mask, frozenset(over)):
                raise NotLowerable("a mask hides all of a row, whose softmax is undefined")

    def _has_empty(self, mask: Node, over: frozenset[int]) -> bool:
        atoms = self._b.atoms
        rows, columns = atoms.resolve_dims(mask.dims)
        over = frozenset(atoms.resolve(tuple(over)))
        last_row = atoms.elements(rows) - 1
        if over.issuperset(columns):  # the first row has the fewest
            return mask.value < 0 and not over.intersection(rows)
        # Summed along the rows, the last column has the fewest: it needs a row from which it is seen.
        return over.issuperset(rows) and atoms.elements(columns) - 1 > last_row + mask.value

    def _triangle(self, triangle: Triangle, dims: AtomDims) -> Node:
        if len(dims) < 2:
            raise NotLowerable("a mask needs rows and columns")
        return self._b.mask(dims[-2], dims[-1], triangle.diagonal)

    @staticmethod
    def _finite(value: float | None, dtype: str) -> float:
        if value is None or is_low(value, dtype):
            raise NotLowerable("a tensor of nothing but minus infinity is outside the fragment")
        return value
