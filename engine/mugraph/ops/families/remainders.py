"""Remainders of a division by a power of two, which are exact: the quotient is, and what is left of it. With another
divisor a rounded quotient may be the next whole number, and the remainder then lies outside of its range."""

from __future__ import annotations

from math import frexp

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder, Rule
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


def _left(whole: Kind) -> Rule:
    """whole: the whole number of times that the divisor is taken away"""

    def rule(b: Builder, args: Arguments, dims: AtomDims) -> Node:
        x, divisor = b.at(args.ref("input"), dims), args.number("other")
        if abs(frexp(divisor)[0]) != 0.5:
            raise NotLowerable(f"{args.call.target} by what is no power of two is outside the fragment")
        # A compiler may not round what it computes of products and sums before it subtracts from it
        if not x.kind.is_leaf and x.kind.opaque is None:
            raise NotLowerable(f"{args.call.target} of a product or a sum is outside the fragment")
        times = b.opaque(whole, b.mul(b.const(1.0 / divisor), x))
        return b.sub(x, b.mul(b.const(divisor), times))

    return rule


lowers("torch.remainder", "Tensor.remainder", "Tensor.__mod__", parameters="input other")(_left(Kind.FLOOR))
lowers("torch.fmod", "Tensor.fmod", parameters="input other")(_left(Kind.TRUNC))
