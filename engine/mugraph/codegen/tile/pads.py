"""What the lanes beyond the end of an axis hold: a known constant, something finite, or anything.

`tl.where` is needed only where a reduction meets lanes that are not its neutral element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.nodes import TileKind


class Unknown(StrEnum):
    VALID = "valid"  # the value lacks the dimension: the same data as in the valid lanes
    FINITE = "finite"
    ANY = "any"


Pad = float | Unknown
Pads = Mapping[Dim, Pad]
"""Only padded dimensions of the value occur."""

VALID, FINITE, ANY = Unknown.VALID, Unknown.FINITE, Unknown.ANY
_AT_ZERO = {
    "silu": 0.0,
    "relu": 0.0,
    "tanh": 0.0,
    "abs": 0.0,
    "erf": 0.0,
    "gelu": 0.0,
    "gelu_tanh": 0.0,
    "sigmoid": 0.5,
}


def elementwise(kind: TileKind, fn: str, args: tuple[Pad, ...]) -> Pad:
    """The pad of one element-wise operator along one dimension (of EXP2: of its logits)."""
    match kind:
        case TileKind.ADD | TileKind.SUB:
            return _sum(kind, *args)
        case TileKind.MUL:
            return _product(*args)
        case TileKind.DIV:
            return _quotient(*args)
        case TileKind.MAX | TileKind.MIN:
            return _one_of(max if kind is TileKind.MAX else min, *args)
        case TileKind.SQRT:
            return ANY if isinstance(args[0], Unknown) or args[0] < 0 else math.sqrt(args[0])
        case TileKind.RSQRT:
            return ANY if isinstance(args[0], Unknown) or args[0] <= 0 else args[0] ** -0.5
        case TileKind.KEEP:  # the mask's own lanes beyond the end may be 0 or 1
            return args[0] if args[0] == 0.0 else FINITE if _finite(args[0]) else ANY
        case TileKind.EXP2:
            return 0.0 if args[0] == -math.inf else ANY
        case TileKind.UNARY:
            return _AT_ZERO.get(fn, ANY) if args[0] == 0.0 else ANY
        case _:
            return ANY


def summed(*factors: Pad) -> Pad:
    """Along a dimension that stays while others are reduced: of SUM, AMAX and ACCUM (one factor), of DOT (both)."""
    pad = factors[0] if len(factors) == 1 else _product(*factors)
    if pad == 0.0 or pad is ANY:
        return pad
    return FINITE if _finite(pad) else ANY


def _finite(pad: Pad) -> bool:
    return pad in (VALID, FINITE) if isinstance(pad, Unknown) else math.isfinite(pad)


def _sum(kind: TileKind, a: Pad, b: Pad) -> Pad:
    if not isinstance(a, Unknown) and not isinstance(b, Unknown):
        result = a + b if kind is TileKind.ADD else a - b
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
