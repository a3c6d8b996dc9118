"""Sigmoids and tanh, however they are written: quotients of exponentials, 1 + tanh, 1 - 2 sigmoid.

So it is one function, in which nothing overflows, and no exponential that would have to be a softmax's. What it is made
of, verification and search know (through_exp.py).
"""

from __future__ import annotations

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.building import Operators
from mugraph.ops.algebra.nodes import Node, constant_factor, factored, terms


def share(b: Operators, a: Node, whole: Node) -> Node | None:
    """The quotient a / whole as a sigmoid, a tanh, or a product with a sigmoid; None where it is none.

    The whole is exp(x) + exp(y); a 1 in it counts as such an exponential. Then `a` must be exp(x) or exp(x) - exp(y).
    Where there is such a 1, `a` may be anything.
    """
    for one, other in terms(whole):
        if not other.kind.is_exponential or not (_is(one, 1.0) or one.kind.is_exponential):
            continue
        argument = other.inputs[0]
        # of the quotient other / whole
        logit = argument if _is(one, 1.0) else _difference(b, argument, one.inputs[0])
        if _is_power(a, other):
            return b.unary("sigmoid", logit)
        for plus, minus in terms(a):
            for sign, x, y in ((0.5, other, one), (-0.5, one, other)):
                if _is_power(plus, x) and _is_minus(minus, y):
                    return b.unary("tanh", b.mul(b.const(sign), logit))
        if _is(one, 1.0):
            return b.mul(a, b.unary("sigmoid", b.mul(b.const(-1.0), argument)))
    return None


def _difference(b: Operators, x: Node, y: Node) -> Node:
    """x - y, where one is the negative of the other twice the one."""
    for one, other, sign in ((x, y, 2.0), (y, x, -2.0)):
        if constant_factor(other) == (-1.0, one):
            return b.mul(b.const(sign), one)
    return b.sub(x, y)


def _is(node: Node, value: float) -> bool:
    return node.kind is Kind.CONST and node.value == value


def _is_power(node: Node, power: Node) -> bool:
    """The same exponential, or the same constant 1?"""
    if not power.kind.is_exponential or not node.kind.is_exponential:
        return _is(node, 1.0) and _is(power, 1.0)
    return factored(node.inputs[0]) == factored(power.inputs[0])  # the same value, or the same multiple of it


def _is_minus(node: Node, power: Node) -> bool:
    """The negative of it?"""
    sign, negated = factored(node)
    return _is_power(negated, power) if sign == -1.0 else _is(node, -1.0) and _is(power, 1.0)


def shifted(b: Operators, a: Node, constant: float) -> Node | None:
    """constant + a, where a is that constant or its negative times tanh(x), or twice the negative times sigmoid(x): as
    sums they would have no digits left where they are near zero."""
    factor, function = factored(a)
    if not function.kind.is_function or a.cases or not constant:
        return None
    if function.fn == "tanh" and abs(factor) == abs(constant):
        slope = b.mul(b.const(2.0 * factor / constant), function.inputs[0])
        return b.mul(b.const(2.0 * constant), b.unary("sigmoid", slope))
    if function.fn == "sigmoid" and factor == -2.0 * constant:
        half = b.mul(b.const(-0.5 if constant > 0.0 else 0.5), function.inputs[0])
        return b.mul(b.const(abs(constant)), b.unary("tanh", half))
    return None
