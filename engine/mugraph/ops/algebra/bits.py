"""Fields of bits as arithmetic on what one mask takes, the form in which kernels compute them:

    x >> n        =  (x - (x & (2^n - 1))) / 2^n         of negative numbers, too
    (x >> n) & m  =  (x & (m * 2^n)) / 2^n
    x & m         =  x - (x & (2^n - 1))                 where m has all bits of x but the lowest n

So the upper half of a byte costs a subtraction once its lower half is known, where a shift costs a conversion of its
own; and as sums and scales are what the algebra knows, a product with the upper halves is one with the bytes and one
with the lower halves (search/collected.py). All of these numbers are whole in float32 but for a power of two.
"""

from __future__ import annotations

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.building import Axes
from mugraph.ops.algebra.nodes import Node


def shifted_right(b: Axes, x: Node, places: int) -> Node:
    """`x >> places`, of whole numbers."""
    if places == 0:
        return x
    if x.shifted is not None and x.shifted[1]:
        return shifted_right(b, x.shifted[0], x.shifted[1] + places)
    return _divided(b, b.sub(x, bits_of(b, x, (1 << places) - 1)), x, places)


def masked(b: Axes, x: Node, mask: int, largest: int | None) -> Node:
    """`x & mask`, of whole numbers. largest: of those of `x`, where none is negative"""
    if x.shifted is not None and x.shifted[1]:
        whole, places = x.shifted
        inside = masked(b, whole, mask << places, None if largest is None else (largest << places) + (1 << places) - 1)
        return _divided(b, inside, inside, places)
    if largest is not None:
        left_out = ((1 << largest.bit_length()) - 1) & ~mask
        if left_out == 0:
            return x
        if left_out & (left_out + 1) == 0:
            found = b.sub(x, bits_of(b, x, left_out))
            found.shifted = Node(Kind.BIT_AND, (x, b.const(float(mask)))), 0
            return found
    return bits_of(b, x, mask)


def bits_of(b: Axes, x: Node, mask: int) -> Node:
    """`x & mask` as one operator; of packed integers that are shifted, their field (packed.py)."""
    of = x.shifted[0] if x.shifted is not None and not x.shifted[1] else x
    if of.kind is Kind.BIT_AND and not of.raw and of.inputs[1].kind is Kind.CONST:
        return bits_of(b, of.inputs[0], mask & int(of.inputs[1].value))
    return b.opaque(Kind.BIT_AND, x, b.const(float(mask))) if mask or x.raw else b.const(0.0)


def _divided(b: Axes, multiple: Node, of: Node, places: int) -> Node:
    found = b.mul(b.const(0.5**places), multiple)
    found.shifted = of, places
    return found
