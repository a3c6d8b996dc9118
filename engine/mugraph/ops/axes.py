"""Axis atoms: the indivisible factors dimensions are made of, with union-find over equals and splits into factors.

A dimension is a tuple of atoms, outermost first; the empty tuple is a dimension of size 1. An atom that turns out to be
two (a view cut its dimension) is split in place: whoever held it sees both parts from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mugraph.ops.registry import NotLowerable

AtomDim = tuple[int, ...]
AtomDims = tuple[AtomDim, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What `Atoms.restore` needs to forget a trial."""

    parent: tuple[int, ...]
    parts: dict[int, tuple[int, int]]


class Atoms:
    """All atoms of one program under construction."""

    def __init__(self) -> None:
        self.size: list[int] = []
        self.hints: list[dict[str, int]] = []
        self._parent: list[int] = []
        self._parts: dict[int, tuple[int, int]] = {}

    def fresh(self, size: int, hint: str = "", weight: int = 1) -> AtomDim:
        """A new dimension of `size` elements: one atom, or none for size 1. `hint` is a name it would like."""
        if size < 1:
            raise NotLowerable("a dimension is empty")
        return () if size == 1 else (self._atom(size, hint, weight),)

    def _atom(self, size: int, hint: str = "", weight: int = 1) -> int:
        atom = len(self.size)
        self.size.append(size)
        self.hints.append({hint: weight} if hint else {})
        self._parent.append(atom)
        return atom

    def suggest(self, dim: AtomDim, hint: str, weight: int) -> None:
        """Let a dimension that is one atom prefer a name."""
        dim = self.resolve(dim)
        if len(dim) == 1:
            hints = self.hints[dim[0]]
            hints[hint] = max(weight, hints.get(hint, 0))

    def _find(self, atom: int) -> int:
        while self._parent[atom] != atom:
            atom = self._parent[atom]
        return atom

    def resolve(self, dim: Sequence[int]) -> AtomDim:
        """The dimension in today's indivisible atoms."""
        found: list[int] = []
        for atom in dim:
            root = self._find(atom)
            parts = self._parts.get(root)
            found.extend(self.resolve(parts) if parts else (root,))
        return tuple(found)

    def resolve_dims(self, dims: Sequence[Sequence[int]]) -> AtomDims:
        return tuple(self.resolve(dim) for dim in dims)

    def elements(self, dim: Sequence[int]) -> int:
        return prod(self.size[atom] for atom in dim)

    def split(self, atom: int, outer: int) -> tuple[int, int]:
        """Make an indivisible atom two: `outer` times the rest."""
        hints = sorted(self.hints[atom], key=lambda hint: -self.hints[atom][hint])
        parts = (self._atom(outer), self._atom(self.size[atom] // outer, hints[0] if hints else ""))
        self._parts[atom] = parts
        return parts

    def regroup(self, atoms: Sequence[int], shape: Sequence[int]) -> AtomDims:
        """Cut the row-major run of atoms into dimensions of these sizes, splitting atoms that cross a border.

        Raises NotLowerable where the sizes do not nest (2·3 against 3·2).
        """
        left = list(reversed(self.resolve(atoms)))
        dims: list[AtomDim] = []
        for size in shape:
            dim: list[int] = []
            while size > 1:
                if not left:
                    raise NotLowerable("a view has more elements than its source")
                atom = left.pop()
                if self.size[atom] > size and self.size[atom] % size == 0:
                    atom, inner = self.split(atom, size)
                    left.append(inner)
                if size % self.size[atom]:
                    raise NotLowerable(f"the sizes of a view do not nest ({self.size[atom]} into {size})")
                dim.append(atom)
                size //= self.size[atom]
            dims.append(tuple(dim))
        if left:
            raise NotLowerable("a view has fewer elements than its source")
        return tuple(dims)

    def align(self, one: AtomDim, two: AtomDim) -> list[tuple[int, int]] | None:
        """Split both dimensions until their atoms have equal sizes; None where they do not nest."""
        a, b = list(reversed(self.resolve(one))), list(reversed(self.resolve(two)))
        pairs: list[tuple[int, int]] = []
        while a and b:
            x, y = a.pop(), b.pop()
            n, m = self.size[x], self.size[y]
            if n > m and n % m == 0:
                x, inner = self.split(x, m)
                a.append(inner)
                b = list(reversed(self.resolve(tuple(reversed(b)))))
            elif m > n and m % n == 0:
                y, inner = self.split(y, n)
                b.append(inner)
                a = list(reversed(self.resolve(tuple(reversed(a)))))
            elif n != m:
                return None
            pairs.append((x, y))
        return None if a or b else pairs

    def union(self, keep: int, other: int) -> None:
        """Two indivisible atoms of one size become one."""
        self._parent[other] = keep
        for hint, weight in self.hints[other].items():
            self.hints[keep][hint] = max(weight, self.hints[keep].get(hint, 0))

    def snapshot(self) -> Snapshot:
        return Snapshot(tuple(self._parent), dict(self._parts))

    def restore(self, state: Snapshot) -> None:
        """Forget unions and splits since `state` (names suggested meanwhile stay; they are only suggestions)."""
        self._parent[: len(state.parent)] = state.parent
        for atom in range(len(state.parent), len(self._parent)):
            self._parent[atom] = atom
        self._parts = dict(state.parts)
