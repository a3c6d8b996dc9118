"""Axis atoms: the indivisible factors dimensions are made of, with union-find over equals and splits into factors.

A dimension is a tuple of atoms, outermost first; the empty tuple is a dimension of size 1. An atom that turns out to be
two (a view cut its dimension) is split in place: whoever held it sees both parts from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.sections import Section, cut

AtomDim = tuple[int, ...]
AtomDims = tuple[AtomDim, ...]
_STATES = 8
"""Of the atoms, for which it is remembered what dimensions are: a refused trial goes back to an earlier one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What `Atoms.restore` needs to forget a trial."""

    parent: tuple[int, ...]
    parts: dict[int, AtomDim]
    state: int


@dataclass(frozen=True, slots=True)
class _Known:
    """What dimensions are in one state of the atoms."""

    resolved: dict[AtomDim, AtomDim] = field(default_factory=dict[AtomDim, AtomDim])
    free: dict[AtomDim, AtomDim] = field(default_factory=dict[AtomDim, AtomDim])


class Atoms:
    """All atoms of one program under construction."""

    def __init__(self) -> None:
        self.size: list[int] = []
        self.hints: list[dict[str, int]] = []
        self._parent: list[int] = []
        self._parts: dict[int, AtomDim] = {}
        self.state = 0  # changes with every union and split, and back when they are forgotten
        self._states = 0
        self.sections: dict[int, Section] = {}
        self._known: dict[Section, int] = {}
        self._of_state: dict[int, _Known] = {}

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

    @property
    def _now(self) -> _Known:
        """Sections that are made later change nothing of it: each is an atom of its own, that stays what it is."""
        if self.state not in self._of_state:
            if len(self._of_state) >= _STATES:
                self._of_state.clear()
            self._of_state[self.state] = _Known()
        return self._of_state[self.state]

    def resolve(self, dim: Sequence[int]) -> AtomDim:
        """The dimension in today's indivisible atoms."""
        known, key = self._now.resolved, tuple(dim)
        if key not in known:
            known[key] = self._resolve(key)
        return known[key]

    def _resolve(self, dim: AtomDim) -> AtomDim:
        found: list[int] = []
        for atom in dim:
            root = self._find(atom)
            parts = self._parts.get(root)
            if parts is not None:
                found.extend(self.resolve(parts))
            elif root in self.sections:
                section = self.sections[root]
                found.extend(self.section(section.size, section.start, section.step, section.inner))
            else:
                found.append(root)
        return tuple(found)

    def section(self, size: int, start: int, step: int, inner: Sequence[int]) -> AtomDim:
        """The elements at start + step * i of a dimension of `size`, where i counts over `inner`.

        Equal sections are one atom. A section that is one of several equal pieces of the dimension, or every nth
        element of it, is one index along an axis of the pieces, beside `inner`.
        """
        inner = self.resolve(inner)
        while inner:
            first, last = self.sections.get(inner[0]), self.sections.get(inner[-1])
            if first is not None and (first.step == 1 or len(inner) == 1):
                each = step * self.elements(inner[1:])
                start, step, inner = start + each * first.start, step * first.step, (*first.inner, *inner[1:])
            elif last is not None and not last.inner:
                start, step, inner = start + step * last.start, step * last.size, inner[:-1]
            else:
                break
        length = self.elements(inner)
        if (start, step, length) == (0, 1, size):
            return inner
        pieces = size // length
        if length > 1 and size % length == 0:
            if step == 1 and start % length == 0 and start >= 0:
                return (*self._section(Section(pieces, start // length, 1, ())), *inner)
            if step == pieces and 0 <= start < pieces:
                return (*inner, *self._section(Section(pieces, start, 1, ())))
        return self._section(Section(size, start, step if inner else 1, inner))

    def _section(self, made: Section) -> AtomDim:
        if made not in self._known:
            self._known[made] = self._atom(made.size)
            self.sections[self._known[made]] = made
        return (self._known[made],)

    def bounds(self, dim: Sequence[int]) -> tuple[int, int]:
        """The first and the last place the dimension reaches, counted over all its elements."""
        first = last = 0
        for atom in self.resolve(dim):
            section, size = self.sections.get(atom), self.size[atom]
            low, high = (
                (0, size - 1) if section is None else (section.start, section.last(self.elements(section.inner)))
            )
            first, last = first * size + min(low, high), last * size + max(low, high)
        return first, last

    def free(self, dim: Sequence[int]) -> AtomDim:
        """The atoms a dimension runs over: those of sections in their place."""
        known, key = self._now.free, tuple(dim)
        if key not in known:
            known[key] = self._free(key)
        return known[key]

    def _free(self, dim: AtomDim) -> AtomDim:
        found: list[int] = []
        for atom in self.resolve(dim):
            section = self.sections.get(atom)
            found.extend((atom,) if section is None else self.free(section.inner))
        return tuple(found)

    def replaced(self, dim: Sequence[int], by: Mapping[int, AtomDim]) -> AtomDim:
        """The dimension with others for some of its atoms, in sections too."""
        found: list[int] = []
        for atom in self.resolve(dim):
            section = self.sections.get(atom)
            if section is None:
                found.extend(by.get(atom, (atom,)))
            else:
                inner = self.replaced(section.inner, by)
                found.extend(self.section(section.size, section.start, section.step, inner))
        return tuple(found)

    def resolve_dims(self, dims: Sequence[Sequence[int]]) -> AtomDims:
        return tuple(self.resolve(dim) for dim in dims)

    def elements(self, dim: Sequence[int]) -> int:
        return prod(self.size[atom] for atom in dim)

    def split(self, atom: int, outer: int) -> tuple[int, int]:
        """Make an indivisible atom, that is no section, two: `outer` times the rest."""
        hints = sorted(self.hints[atom], key=lambda hint: -self.hints[atom][hint])
        parts = (self._atom(outer), self._atom(self.size[atom] // outer, hints[0] if hints else ""))
        self._parts[atom] = parts
        self._changed()
        return parts

    def _changed(self) -> None:
        self._states += 1
        self.state = self._states

    def _cut(self, atom: int, outer: int) -> tuple[AtomDim, AtomDim]:
        """An indivisible atom as `outer` times the rest."""
        section = self.sections.get(atom)
        if section is None:
            one, rest = self.split(atom, outer)
            return (one,), (rest,)
        n = section.size // outer
        found = cut(section, self.elements(section.inner), n)
        if found is None:
            raise NotLowerable("a slice does not keep whole pieces of what a view makes of its dimension")
        counts = self.regroup(section.inner, (found.outer[2], found.inner[2]))
        first = self.section(outer, *found.outer[:2], counts[0])
        second = self.section(n, *found.inner[:2], counts[1])
        self._parts[atom] = (*first, *second)
        self._changed()
        return first, second

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
                    outer, inner = self._cut(atom, size)
                    left.extend(reversed(inner))
                    dim.extend(outer)
                    break
                if size % self.size[atom]:
                    raise NotLowerable(f"the sizes of a view do not nest ({self.size[atom]} into {size})")
                dim.append(atom)
                size //= self.size[atom]
            dims.append(tuple(dim))
        if left:
            raise NotLowerable("a view has fewer elements than its source")
        return tuple(dims)

    def align(self, first: AtomDim, second: AtomDim) -> list[tuple[int, int]] | None:
        """Split both dimensions until their atoms have equal sizes; None where they do not nest. Sections are left out:
        only those that keep the same elements pair what they run over."""
        a, b = list(reversed(self.resolve(first))), list(reversed(self.resolve(second)))
        pairs: list[tuple[int, int]] = []
        while a and b:
            x, y = a.pop(), b.pop()
            n, m = self.size[x], self.size[y]
            if x in self.sections or y in self.sections:
                one, two = self.sections.get(x), self.sections.get(y)
                if n != m:
                    return None
                if one is not None and two is not None and (one.start, one.step) == (two.start, two.step):
                    pairs.extend(self.align(one.inner, two.inner) or ())
                continue
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
        self._changed()
        for hint, weight in self.hints[other].items():
            self.hints[keep][hint] = max(weight, self.hints[keep].get(hint, 0))

    def snapshot(self) -> Snapshot:
        return Snapshot(tuple(self._parent), dict(self._parts), self.state)

    def restore(self, state: Snapshot) -> None:
        """Forget unions and splits since `state` (names suggested meanwhile stay; they are only suggestions)."""
        self._parent[: len(state.parent)] = state.parent
        for atom in range(len(state.parent), len(self._parent)):
            self._parent[atom] = atom
        self._parts = dict(state.parts)
        self.state = state.state
