"""Axes that stand side by side wherever they are become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.sections import Section


class JoinedAxes:
    """Atoms that stand side by side wherever they are, joined: only a view had cut them apart.

    sizes: of the atoms that are left
    """

    def __init__(self, builder: Builder, nodes: Sequence[Node], outputs: Sequence[AtomDims]) -> None:
        """nodes: all of the graph's. outputs: the dimensions of each."""
        self._atoms = builder.atoms
        self.sizes: dict[int, int] = {}
        self._gone: set[int] = set()
        lists = [dim for node in nodes for dim in node.runs] + [dim for dims in outputs for dim in dims]
        lists = [list(run) for dim in lists for run in self._unbroken(dim)]
        overs = [set(builder.atoms.resolve(node.over)) for node in nodes if node.over]
        for atom in (atom for dim in lists for atom in dim):
            self.sizes[atom] = builder.atoms.size[atom]
        for over in overs:
            self.sizes.update((atom, builder.atoms.size[atom]) for atom in over)
        while pair := self._adjacent(lists, overs):
            a, b = pair
            self.sizes[a] *= self.sizes.pop(b)
            self._gone.add(b)
            lists = [[atom for atom in dim if atom != b] for dim in lists]
            overs = [over - {b} for over in overs]

    @staticmethod
    def _adjacent(lists: Sequence[Sequence[int]], overs: Sequence[set[int]]) -> tuple[int, int] | None:
        after: dict[int, set[int]] = {}
        before: dict[int, set[int]] = {}
        for dim in lists:
            for a, b in zip((-1, *dim), (*dim, -1), strict=True):
                after.setdefault(a, set()).add(b)
                before.setdefault(b, set()).add(a)
        for a, nexts in after.items():
            if a < 0 or len(nexts) != 1:
                continue
            (b,) = nexts
            if b >= 0 and before[b] == {a} and all((a in over) == (b in over) for over in overs):
                return a, b
        return None

    def _unbroken(self, dim: Sequence[int]) -> list[AtomDim]:
        """The dimension, cut at its sections, and what those run over."""
        runs: list[AtomDim] = [()]
        for atom in self._atoms.resolve(dim):
            section = self._atoms.sections.get(atom)
            if section is None:
                runs[-1] = (*runs[-1], atom)
            else:
                runs += [*self._unbroken(section.inner), ()]
        return runs

    @property
    def sections(self) -> dict[int, Section]:
        """Each section, in terms of the axes that are left."""
        return {atom: replace(section, inner=self.dim(section.inner)) for atom, section in self._atoms.sections.items()}

    def free(self, dim: Sequence[int]) -> AtomDim:
        """What a dimension runs over."""
        return tuple(atom for atom in self._atoms.free(dim) if atom not in self._gone)

    def axes(self, dims: AtomDims) -> frozenset[int]:
        """What the dimensions run over."""
        return frozenset(atom for dim in dims for atom in self.free(dim))

    def dim(self, atoms: Sequence[int]) -> tuple[int, ...]:
        return tuple(atom for atom in self._atoms.resolve(atoms) if atom not in self._gone)

    def dims(self, dims: AtomDims) -> AtomDims:
        return tuple(self.dim(dim) for dim in dims)
