"""Values some of which are minus infinity (Node.keep): what an exponential makes of them.

Where masks along axes say what is hidden, the exponential is multiplied by them, and a kernel need not look at what
they hide. What any other condition hides, as a mask that is an input, is minus infinity inside the exponential.

Code often hides by a finite number that no logit is near (Node.low). It is one where a mask that is read may hide the
rest of the row in the same way: PyTorch then spreads the row over all that has the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.building import Operators
from mugraph.ops.algebra.nodes import HIDDEN, Node, conjuncts, constant_factor, factors, terms
from mugraph.ops.algebra.refusals import NotLowerable


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


def is_plain(a: Node, *, alone: bool = True) -> bool:
    """Are none of the logits hidden by what is read? Numbers that are read and added to others may be a mask's, and so
    may be what a condition chooses. alone: nothing else is added to it"""
    if a.keep is not None:
        return not read_parts(a.keep) and is_plain(a.inputs[0], alone=alone)
    scaled = constant_factor(a)
    if scaled is not None:
        return is_plain(scaled[1], alone=alone)
    for one, other in terms(a):
        is_shift = one.kind is Kind.CONST or other.kind is Kind.CONST
        return all(is_plain(each, alone=alone and is_shift) for each in (one, other))
    if a.kind.opaque is not None and (a.kind.opaque.vanishes or a.kind.opaque.hides):
        return False
    return alone or _is_computed(a)


def _is_computed(a: Node) -> bool:
    """Is it no function of single numbers that are read: a product's, or one of places, as the slopes of ALiBi times
    distances are?"""
    waiting, seen, reads = [a], set[int](), False
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind.contracts or node.kind is Kind.POSITION:
            return True
        reads |= node.kind is Kind.LOAD
        waiting += [*node.inputs, *node.cases]
    return not reads


def replaced(b: Operators, a: Node, keep: Node, other: Node) -> Node:
    """`a` where the masks hold, elsewhere the other one."""
    if a.keep is not None:
        raise NotLowerable("logits that one mask makes minus infinity are made a finite number by another")
    elsewhere = b.sub(b.const(1.0), keep)
    for one, two in terms(other):
        if one is a:
            return b.add(a, b.mul(two, elsewhere))
    return b.add(b.mul(a, keep), b.mul(other, elsewhere))


def as_numbers(b: Operators, a: Node) -> Node:
    """A value with a `low`, which it is there."""
    assert a.keep is not None
    assert a.low is not None
    return replaced(b, a.inputs[0], a.keep, a.low)
