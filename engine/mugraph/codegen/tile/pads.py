"""What the lanes beyond the end of an axis hold: a known constant, something finite, or anything.

`tl.where` is needed only where a reduction meets lanes that are not its neutral element.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import numpy as np

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.kinds import AnyKind
from mugraph.ir.ops import Kind
from mugraph.ops.functions.floats import float_unary


class Unknown(StrEnum):
    VALID = "valid"  # the value lacks the dimension: the same data as in the valid lanes
    FINITE = "finite"
    ANY = "any"


Pad = float | Unknown
Pads = Mapping[Dim, Pad]
"""Only padded dimensions of the value occur."""

VALID, FINITE, ANY = Unknown.VALID, Unknown.FINITE, Unknown.ANY


class Lanes:
    """What a lane beyond the end holds, an arithmetic: what comes of what is in the operands' lanes."""

    def constant(self, value: float) -> Pad:
        return value

    def add(self, a: Pad, b: Pad) -> Pad:
        return _sum(operator.add, a, b)

    def sub(self, a: Pad, b: Pad) -> Pad:
        return _sum(operator.sub, a, b)

    def mul(self, a: Pad, b: Pad) -> Pad:
        return _product(a, b)

    def div(self, a: Pad, b: Pad) -> Pad:
        return _quotient(a, b)

    def maximum(self, a: Pad, b: Pad) -> Pad:
        return _one_of(max, a, b)

    def minimum(self, a: Pad, b: Pad) -> Pad:
        return _one_of(min, a, b)

    def sqrt(self, a: Pad) -> Pad:
        return ANY if isinstance(a, Unknown) or a < 0 else math.sqrt(a)

    def rsqrt(self, a: Pad) -> Pad:
        return ANY if isinstance(a, Unknown) or a <= 0 else a**-0.5

    def keep(self, a: Pad) -> Pad:
        """The mask's own lanes beyond the end may be 0 or 1."""
        return a if a == 0.0 else FINITE if _finite(a) else ANY

    def exp(self, a: Pad) -> Pad:
        return ANY

    def exp2(self, a: Pad) -> Pad:
        """Of the logits; the maximum is finite."""
        return 0.0 if a == -math.inf else ANY

    def unary(self, fn: str, a: Pad) -> Pad:
        return float(float_unary(fn)(np.zeros(()))) if a == 0.0 else ANY

    def opaque(self, kind: Kind, *operands: Pad) -> Pad:
        if kind.opaque is not None and kind.opaque.vanishes and 0.0 in operands:
            return 0.0
        known = [a for a in operands if not isinstance(a, Unknown)]
        if kind.opaque is None or len(known) < len(operands) or not all(map(math.isfinite, known)):
            return FINITE if kind.opaque is not None and kind.opaque.is_truth else ANY
        with np.errstate(all="ignore"):  # a logarithm of 0 is anything
            result = float(kind.opaque.numbers(*map(np.float64, known)))
        return result if math.isfinite(result) else ANY


LANES = Lanes()


def elementwise(kind: AnyKind, fn: str, args: Sequence[Pad]) -> Pad:
    """The pad of one element-wise operator along one dimension (of EXP2: of its logits)."""
    return kind.meaning(LANES, args, fn, ())


def summed(*factors: Pad) -> Pad:
    """Along a dimension that stays while others are reduced: of SUM, AMAX and ACCUM (one factor), of DOT (both)."""
    pad = factors[0] if len(factors) == 1 else _product(*factors)
    if pad == 0.0 or pad is ANY:
        return pad
    return FINITE if _finite(pad) else ANY


def _finite(pad: Pad) -> bool:
    return pad in (VALID, FINITE) if isinstance(pad, Unknown) else math.isfinite(pad)


def _sum(join: Callable[[float, float], float], a: Pad, b: Pad) -> Pad:
    if not isinstance(a, Unknown) and not isinstance(b, Unknown):
        result = join(a, b)
        return ANY if math.isnan(result) else result
    if a == -math.inf and _finite(b):
        return -math.inf
    return FINITE if _finite(a) and _finite(b) else ANY


def _one_of(choose: Callable[[float, float], float], a: Pad, b: Pad) -> Pad:
    if not isinstance(a, Unknown) and not isinstance(b, Unknown):
        return choose(a, b)
    return FINITE if _finite(a) and _finite(b) else ANY


def _product(a: Pad, b: Pad) -> Pad:
    if not isinstance(a, Unknown) and not isinstance(b, Unknown):
        result = a * b
        return ANY if math.isnan(result) else result
    if _finite(a) and _finite(b):
        return 0.0 if a == 0.0 or b == 0.0 else FINITE
    return ANY


def _quotient(a: Pad, b: Pad) -> Pad:
    if b is VALID and _finite(a):  # it divides valid lanes too, so it is not zero
        return 0.0 if a == 0.0 else FINITE
    if not isinstance(b, Unknown):
        if b == 0.0 or not math.isfinite(b):
            return ANY
        return a / b if not isinstance(a, Unknown) else a
    return ANY
