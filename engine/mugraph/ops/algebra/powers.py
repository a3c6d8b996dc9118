"""Powers that products, quotients and square roots express, and numbers that are powers of sizes."""

from __future__ import annotations

from functools import reduce

from mugraph.ir.ranges import Product
from mugraph.ir.sized_arguments import SizedNumber
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.counts import Size
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable


def power(b: Building, x: Node, exponent: float) -> Node:
    """x to a power that products, quotients and square roots express."""
    if exponent < 0.0:
        return b.div(b.const(1.0), power(b, x, -exponent))
    if exponent == 0.0:
        return b.const(1.0)
    if exponent % 1.0 == 0.5 and exponent < 4.0:
        root = b.sqrt(x)
        return root if exponent == 0.5 else b.mul(power(b, x, exponent - 0.5), root)
    if exponent % 1.0 or exponent > 8.0:
        raise NotLowerable(f"the power {exponent} is outside the fragment")
    half = power(b, x, exponent // 2) if exponent > 1.0 else x
    if exponent == 1.0:
        return x
    square = b.mul(half, half)
    return b.mul(square, x) if exponent % 2 else square


def number_of_sizes(b: Building, number: SizedNumber) -> Node:
    """The number at all sizes, of counts of places."""
    return b.mul(b.const(number.factor), power(b, _product(b, number.of), number.power))


def _product(b: Building, of: Product) -> Node:
    found = b.const(float(of.factor))
    for name in of.names:
        found = b.mul(found, Size(name).node(b))
    for one in of.sums:
        terms = [b.mul(b.const(float(times)), Size(name).node(b)) for name, times in one.terms]
        found = b.mul(found, b.add(reduce(b.add, terms), b.const(float(one.offset))))
    return found
