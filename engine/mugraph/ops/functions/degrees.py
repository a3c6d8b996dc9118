"""How a result changes when one value is multiplied by a number: by the number's d-th power, if the result's degree is
d."""

from __future__ import annotations

from mugraph.ir.ops import Kind


class NoDegree(Exception):
    """The result has no degree, as a sum of values of different degrees, or a function of a value that changes."""


class Degrees:
    """The primitives that kinds are made of (kinds/kind.py), on degrees. Each may raise NoDegree."""

    def constant(self, value: float) -> float:
        return 0.0

    def add(self, a: float, b: float) -> float:
        return a if a == b else self.none(a, b)

    def mul(self, a: float, b: float) -> float:
        return a + b

    def div(self, a: float, b: float) -> float:
        return a - b

    def sqrt(self, a: float) -> float:
        return a / 2

    def exp(self, a: float) -> float:
        return self.none(a)

    def unary(self, fn: str, a: float) -> float:
        return self.none(a)

    def opaque(self, kind: Kind, *operands: float) -> float:
        """It has none. A logarithm counts as unchanged: the code generator adds what is missing (tile/softmax.py)."""
        return 0.0 if kind.opaque is not None and kind.opaque.undoes_exp else self.none(*operands)

    def maximum(self, a: float, b: float) -> float:
        return self.none(a, b)

    def amax(self, a: float, over: object) -> float:
        return self.none(a)

    def sum(self, a: float, over: object) -> float:
        return a

    def dot(self, a: float, b: float, over: object) -> float:
        return a + b

    def running(self, a: float, over: object, backwards: bool) -> float:
        return a

    def none(self, *degrees: float) -> float:
        """0 where no operand depends on the number; else there is no degree."""
        if any(degrees):
            raise NoDegree
        return 0.0


class PositiveDegrees(Degrees):
    """Degrees for a positive number, which leaves the largest value the largest. A logarithm has none here."""

    def opaque(self, kind: Kind, *operands: float) -> float:
        return self.none(*operands)

    def maximum(self, a: float, b: float) -> float:
        return a if a == b else self.none(a, b)

    def amax(self, a: float, over: object) -> float:
        return a
