"""Numbers that are known, as an arithmetic: what an element-wise kind makes of constants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mugraph.kinds.kind import Kind


class Numbers:
    """Raises ArithmeticError or ValueError where a result is no number."""

    def constant(self, value: float) -> float:
        return value

    def add(self, a: float, b: float) -> float:
        return a + b

    def mul(self, a: float, b: float) -> float:
        return a * b

    def div(self, a: float, b: float) -> float:
        return a / b

    def sqrt(self, a: float) -> float:
        return math.sqrt(a)

    def exp(self, a: float) -> float:
        return math.exp(a)

    def opaque(self, kind: Kind, *operands: float) -> float:
        assert kind.opaque is not None
        result = float(kind.opaque.numbers(*map(np.float64, operands)))
        if not math.isfinite(result):
            raise ArithmeticError(f"{kind} of {', '.join(f'{a:g}' for a in operands)} is {result}")
        return result

    def maximum(self, a: float, b: float) -> float:
        return max(a, b)
