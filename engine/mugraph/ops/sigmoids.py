"""Sigmoids, however they are written: quotients of exponentials, and 1 + tanh.

As a sigmoid it is one function, in which nothing overflows, and no exponential that would have to be a softmax's. What
it is made of, verification and search know (through_exp.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mugraph.ir.ops import Kind

if TYPE_CHECKING:
    from mugraph.ops.builder import Builder, Node


def share(b: Builder, a: Node, whole: Node) -> Node | None:
    """a / whole, where the whole is 1 + exp(x), or a is exp(x) and the whole exp(x) + exp(y)."""
    if whole.kind is not Kind.ADD or whole.keep is not None or whole.cases:
        return None
    for one, power in (whole.inputs, whole.inputs[::-1]):
        is_one = one.kind is Kind.CONST and one.value == 1.0
        if power.kind is not Kind.EXP or not (is_one or one.kind is Kind.EXP):
            continue
        argument = power.inputs[0]
        if a.kind is Kind.EXP and a.inputs[0] is argument:
            return b.unary("sigmoid", argument if is_one else b.sub(argument, one.inputs[0]))
        if is_one:
            return b.mul(a, b.unary("sigmoid", b.mul(b.const(-1.0), argument)))
    return None


def above_tanh(b: Builder, a: Node, constant: float) -> Node | None:
    """constant + a, where a is the constant or its negative times tanh(x): as a sum it would have no digits left where
    tanh is near -1 or 1."""
    scaled = a.kind is Kind.MUL and a.inputs[0].kind is Kind.CONST
    factor, tanh = (a.inputs[0].value, a.inputs[1]) if scaled else (1.0, a)
    if tanh.kind is not Kind.UNARY or tanh.fn != "tanh" or a.cases or abs(factor) != abs(constant):
        return None
    slope = b.mul(b.const(2.0 * factor / constant), tanh.inputs[0])
    return b.mul(b.const(2.0 * constant), b.unary("sigmoid", slope))
