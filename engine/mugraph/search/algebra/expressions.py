"""Mirage's Table 1: the abstract expressions of operators, by the primitives that kinds are made of (kinds/kind.py)."""

from __future__ import annotations

from mugraph.search.algebra.abstract import NF, Algebra


class Expressions:
    """`over`: the prime of the parts that are reduced."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self.opaque = algebra.opaque
        self.constant, self.unary, self.exp, self.sqrt = algebra.atom, algebra.unary, algebra.exp, algebra.sqrt
        self.add, self.mul, self.div, self.maximum = algebra.add, algebra.mul, algebra.div, algebra.maximum

    def amax(self, a: NF, over: int) -> NF:
        return self._algebra.amax(over, a)

    def sum(self, a: NF, over: int) -> NF:
        return self._algebra.sum(over, a)

    def dot(self, a: NF, b: NF, over: int) -> NF:
        return self._algebra.sum(over, self._algebra.mul(a, b))

    def running(self, a: NF, over: int, backwards: bool) -> NF:
        """A function of which nothing is known, along one axis."""
        return self._algebra.unary(f"running sum {'back ' if backwards else ''}along {over}", a)
