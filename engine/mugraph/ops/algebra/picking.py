"""What stands at an index of a row: the sum over the row of each element where its place is the index, and 0 elsewhere.

So it is found in a pass over the row that is made anyway, and nothing is looked up. What is added to all of a row is
not picked but added: a log-probability is picked from the logits, without the log-sum-exp that is known after the pass.
(The index is that of an element; where it is none, PyTorch has no result either.)
"""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.axes import AtomDim
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node, constant_factor, terms


def picked(b: Builder, index: Node, of: Node, row: AtomDim) -> Node:
    """index: without the row's axis"""
    is_it = b.opaque(Kind.EQUAL, index, b.places.along(row))

    def at_index(node: Node) -> Node:
        if not _has(b, node, row):
            return node
        for one, other in terms(node):
            if not _has(b, other, row):
                return b.add(at_index(one), other)
        scaled = constant_factor(node)
        if scaled is not None:
            return b.mul(b.const(scaled[0]), at_index(scaled[1]))
        return b.sum(b.opaque(Kind.KEPT, is_it, node), row)

    return at_index(of)


def _has(b: Builder, node: Node, row: AtomDim) -> bool:
    """Does its value vary along the row?"""
    wanted = frozenset(b.atoms.free(row))
    seen: set[int] = set()
    left: list[Node] = [node]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if not wanted.isdisjoint(b.atoms.free(one.over)):  # a norm's sum runs over the same row
            continue
        dims: Sequence[AtomDim] = one.dims if not one.on else (*one.dims, one.on)
        if any(not wanted.isdisjoint(b.atoms.free(dim)) for dim in dims):
            return True
        left += [*one.inputs, *one.cases, *([one.keep] if one.keep is not None else [])]
    return False
