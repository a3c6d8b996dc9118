"""Sizes that are computed with, as in `x.sum(1) / x.shape[1]`: which axes their places are counted along.

One that is summed anyway, so that a kernel that goes along it counts what it reads, and finds its length there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable


def settle_counts(builder: Builder, nodes: Sequence[Node]) -> None:
    """Raises NotLowerable where no axis of a size is summed."""
    atoms = builder.atoms
    for name, counted in builder.counted.items():
        own = atoms.resolve(counted)
        if not any(set(own).intersection(atoms.resolve(node.over)) for node in nodes):
            continue
        others = dict.fromkeys(atom for node in nodes for atom in atoms.resolve(node.over) if atom not in own)
        having = {*_along(builder, nodes, name)}
        found = next((one for one in others if one in having and atoms.size[one] == atoms.elements(own)), None)
        if found is None or len(own) != 1:
            raise NotLowerable(f"a number that depends on {name} is computed with, and no sum goes along it")
        atoms.union(found, own[0])


def _along(builder: Builder, nodes: Sequence[Node], name: str) -> Iterator[int]:
    """Axes of inputs that are multiples of a size."""
    for node in nodes:
        lengths = builder.varying.get(node.source, ()) if node.kind is Kind.LOAD else ()
        for dim, of in zip(node.dims, lengths, strict=False):
            axes = builder.atoms.resolve(dim)
            if of.names == (name,) and not of.sums and len(axes) == 1:
                yield axes[0]
