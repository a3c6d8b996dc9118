"""Conversions of computed numbers to types of eight bits, which round: each is an operator of its own.

A float8 type takes the nearest of its numbers. What is beyond the largest one depends on PyTorch: of float8_e4m3fn it
is NaN up to 2.12, since then the largest number. The program says what PyTorch does here; where a clamp, or a division
by the largest number of a row, bounds the value, all do the same. Whole numbers are what is left without the digits
after the point; beyond their type PyTorch's result is undefined, so that the value has to be bounded (builder.py).
"""

from __future__ import annotations

from functools import cache

from mugraph.ir.dtypes import ELEMENTS, FLOATS
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.bounds import Bounds
from mugraph.ops.algebra.building import Operators
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.spans import SMALL

CONVERTED = frozenset(kind.stored for kind in Kind if kind.stored)
"""Types that a computed number is rounded to by a kind."""
_KINDS = {kind.stored: kind for kind in Kind if kind.stored}


def converted(b: Operators, bounds: Bounds, x: Node, dtype: str) -> Node:
    """What is left of x in the type: float8, or whole numbers."""
    if bounds.has_type(x) == dtype:
        return x
    if dtype not in _KINDS:
        return x if bounds.are_whole(x) else b.opaque(Kind.TRUNC, x)
    low, high = bounds.ends(x)
    kind, largest = _KINDS[dtype], ELEMENTS[dtype].largest
    assert kind.opaque is not None
    if abs(float(kind.opaque.numbers(max(-low, high)))) <= largest:
        return b.opaque(kind, x)
    if not kind.opaque.has_nan_beyond:
        raise NotLowerable(
            f"a conversion to {ELEMENTS[dtype].torch} of what may be larger than {largest:g}, where a kernel has no "
            "infinity"
        )
    if saturates():
        minus, most = b.const(-1.0), b.const(largest)
        x = b.mul(minus, b.maximum(b.mul(minus, b.maximum(x, b.const(-largest))), b.mul(minus, most)))
    return b.opaque(kind, x)


def is_rounded(before: str, after: str) -> bool:
    """Does a conversion from one type to another take another number, not only in fewer digits?"""
    return before != after and (after in CONVERTED or (after in SMALL and before in FLOATS))


@cache
def saturates() -> bool:
    """Does PyTorch, as it is installed here, take the largest number of float8_e4m3fn for what is larger?"""
    import torch

    return bool(torch.tensor(2.0**20).to(torch.float8_e4m3fn).float().isfinite())
