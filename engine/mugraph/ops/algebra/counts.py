"""How many places something is summed over, as a mean and a variance divide by it.

Where a size varies no number says it at all sizes: ones are summed along the axis, by the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from mugraph.ir.calls import Ref
from mugraph.ops.algebra.axes import AtomDim
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable


@dataclass(frozen=True)
class Count:
    """known: of places along axes whose size is known. atoms: of the others. whole: of all, at the size at hand"""

    known: int
    atoms: AtomDim = ()
    whole: int = 0

    def share(self, b: Building, total: Node, less: float = 0.0) -> Node:
        """total / (count - less)."""
        if (self.whole or self.known) <= less:
            raise NotLowerable("a variance of too few elements")
        if not self.atoms:
            return b.mul(b.const(1.0 / (self.known - less)), total)
        if less:
            return b.div(total, b.sub(self.node(b), b.const(less)))
        total = b.mul(b.const(1.0 / self.known), total)
        for atom in self.atoms:
            total = b.div(total, ones(b, atom))
        return total

    def node(self, b: Building) -> Node:
        """The count as a value."""
        found = b.const(float(self.known))
        for atom in self.atoms:
            found = b.mul(found, ones(b, atom))
        return found


def ones(b: Building, atom: int) -> Node:
    """The sum of ones along an axis."""
    return b.sum(b.mask((atom,), (), 0, "first"), (atom,))


@dataclass(frozen=True)
class Size:
    """A size that varies, by its name."""

    name: str

    def node(self, b: Building) -> Node:
        """Ones along an axis of their own: the least multiple of the size that a dimension of a tensor is, so that
        kernels find out how long it is."""
        least = min(
            (of.factor for dims in b.varying.values() for of in dims if of.names == (self.name,) and not of.sums),
            default=0,
        )
        if not least:
            raise NotLowerable(f"no dimension is {self.name}, which is computed with")
        if self.name not in b.counted:
            b.counted[self.name] = b.atoms.fresh(least * b.point[self.name], "i")
        return b.mul(b.const(1.0 / least), Count(1, b.counted[self.name]).node(b))


def count_along(b: Building, operand: Ref, dims: Iterable[tuple[int, AtomDim]]) -> Count:
    """Of places of an operand. dims: which of its dimensions, each with the atoms of it that count"""
    return count_of(b, (operand,), dims)


def count_of(b: Building, operands: Sequence[Ref], dims: Iterable[tuple[int, AtomDim]]) -> Count:
    """Of places of what operands are broadcast to. dims: which of its dimensions, each with the atoms that count"""
    ranks = {ref: len(b.shape(ref)) for ref in operands}
    rank = max(ranks.values())
    varies = {rank - ranks[ref] + dim for ref in operands for dim, of in enumerate(b.varying.get(ref.value, ())) if of}
    known, varying = list[int](), list[int]()
    for dim, atoms in dims:
        (varying if dim in varies else known).extend(b.atoms.resolve(atoms))
    rest, whole = (prod(b.atoms.size[atom] for atom in some) for some in (known, (*known, *varying)))
    return Count(rest, tuple(varying), whole)
