"""Values some of which are minus infinity (Node.keep): what an exponential makes of them.

Where masks along axes say what is hidden, the exponential is multiplied by them, and a kernel need not look at what
they hide. What any other condition hides, as a mask that is an input, is minus infinity inside the exponential.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.building import Operators
from mugraph.ops.algebra.nodes import HIDDEN, Node, conjuncts, constant_factor, factors, terms


def both(b: Operators, one: Node, other: Node) -> Node:
    """What keeps a value that two conditions keep."""
    return reduce(b.mul, dict.fromkeys((*parts(one), *parts(other))))


def parts(keep: Node) -> Sequence[Node]:
    """Masks and other conditions, all of which have to hold."""
    masks = conjuncts(keep)
    if masks or not factors(keep):
        return masks or (keep,)
    return tuple(part for factor in keep.inputs for part in parts(factor))


def read_parts(keep: Node) -> Sequence[Node]:
    """Those that no places decide."""
    return [part for part in parts(keep) if not conjuncts(part)]


def exponential(b: Operators, a: Node) -> Node:
    """Of a value with a `keep`: 0 where it is minus infinity."""
    assert a.keep is not None
    found, read = a.inputs[0], read_parts(a.keep)
    if not read:
        return b.mul(b.exp(found), a.keep)
    masks = [part for part in parts(a.keep) if conjuncts(part)]
    found, shift = _without_shift(found)
    factor, scaled = constant_factor(found) or (1.0, found)
    if factor > 0.0:  # a kernel's powers of two take the factor in
        found = b.mul(b.const(factor), b.opaque(Kind.SEEN, reduce(b.mul, read), scaled))
    else:
        found = b.opaque(Kind.SEEN, reduce(b.mul, read), found)
    made = b.exp(found if shift is None else b.add(found, shift))
    return reduce(b.mul, masks, made)


def _without_shift(a: Node) -> tuple[Node, Node | None]:
    """The value, and what is added to all of its row: the negative of the row's largest value, which no softmax
    depends on."""
    for one, other in terms(a):
        scaled = constant_factor(other)
        if scaled is not None and scaled[1].fn == HIDDEN:
            return one, other
    return a, None
