"""An arithmetic of truth values: is a result zero, given which of its operands are? What is not known to be zero may be
anything."""

from __future__ import annotations

from mugraph.kinds.kind import Kind


class Zeros:
    """The primitives that kinds are made of (`Arithmetic`)."""

    def constant(self, value: float) -> bool:
        return value == 0.0

    def add(self, a: bool, b: bool) -> bool:
        return a and b

    def sub(self, a: bool, b: bool) -> bool:
        return a and b

    def mul(self, a: bool, b: bool) -> bool:
        return a or b

    def div(self, a: bool, b: bool) -> bool:
        return a

    def maximum(self, a: bool, b: bool) -> bool:
        return a and b

    def minimum(self, a: bool, b: bool) -> bool:
        return a and b

    def sqrt(self, a: bool) -> bool:
        return False

    def rsqrt(self, a: bool) -> bool:
        return False

    def exp(self, a: bool) -> bool:
        return False

    def unary(self, fn: str, a: bool) -> bool:
        return False

    def opaque(self, kind: Kind, *operands: bool) -> bool:
        return False

    def sum(self, a: bool, over: object) -> bool:
        return a

    def running(self, a: bool, over: object, backwards: bool) -> bool:
        return a

    def amax(self, a: bool, over: object) -> bool:
        return a

    def dot(self, a: bool, b: bool, over: object) -> bool:
        return a or b
