"""Rows: what the statistics of a norm or a softmax are taken of, though only a part of its result may be asked for.

`rms_norm(x)[..., 64:]` has the mean square of all of x. Where equal pieces of a dimension are asked for, as by chunk, a
sum over it is one of sums over the pieces, so that each piece is read once; where it is another part, all of the
dimension is read at an axis of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from mugraph.ir.calls import Ref
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.concat import MOST
from mugraph.ops.algebra.counts import Count
from mugraph.ops.algebra.nodes import Node


@dataclass(frozen=True)
class Rows:
    """pieces: one after the other they are the rows. over: the atoms of each that run along the rows"""

    builder: Building
    pieces: tuple[Node, ...]
    over: AtomDim

    def sum(self, of: Callable[[Node], Node]) -> Node:
        """Of what is made of each element."""
        b = self.builder
        return reduce(b.add, (b.sum(of(piece), self.over) for piece in self.pieces))

    def mean(self, count: Count, of: Callable[[Node], Node]) -> Node:
        return count.share(self.builder, self.sum(of))


def rows(b: Building, operand: Ref, dims: AtomDims, over: AtomDim) -> Rows:
    """Of the operand asked for at `dims`, along the atoms `over`, which are some of these."""
    atoms = b.atoms
    over = atoms.resolve(over)
    parts = [atom for atom in over if atom in atoms.sections]
    pieces = [atom for atom in parts if not atoms.sections[atom].inner]
    if prod(atoms.size[atom] for atom in pieces) > MOST:
        pieces = []
    whole = {atom: atoms.fresh(atoms.size[atom], "k") for atom in parts if atom not in pieces}

    def piece(place: tuple[int, ...]) -> Node:
        one = {atom: atoms.section(atoms.size[atom], n, 1, ()) for atom, n in zip(pieces, place, strict=True)}
        by = whole | one
        wanted = [tuple(x for atom in dim for x in by.get(atom, (atom,))) for dim in atoms.resolve_dims(dims)]
        return b.at(operand, wanted)

    nodes = tuple(piece(place) for place in product(*(range(atoms.size[atom]) for atom in pieces)))
    return Rows(b, nodes, tuple(x for atom in over if atom not in pieces for x in whole.get(atom, (atom,))))
