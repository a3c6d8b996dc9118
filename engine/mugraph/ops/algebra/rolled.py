"""Parts of a concatenation that differ in a number alone: one value with one more axis in their place.

`stack([f(x[0], w[0]), f(x[1], w[1]), …])` is f of all of x and w, along one more axis. The operators of the parts are
compared in step, from the results down to the loads. Axes that a part sums over are its own; they are paired where they
are met. Loads may differ in where a section begins, if the next part's is always as many places further. What all parts
read at the same place has no such axis. Each set of operators is compared once, so that it takes as long as the parts
have operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.axes import AtomDim, AtomDims, Atoms
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.sections import Section

Alike = tuple[Node, ...]
"""Nodes at one place of the parts, one of each."""


def rolled(b: Building, on: AtomDim, parts: Sequence[Node]) -> Node | None:
    """The value that is part `i` at place `i` along `on`; None where the parts differ in anything else, or in nothing:
    equal ones have no axis to be written along."""
    on = b.atoms.resolve(on)
    if len(parts) < 2 or b.atoms.elements(on) != len(parts):
        return None
    compared = _Comparison(b, on)
    differing = compared.of(tuple(parts))
    if differing is None:
        return None
    made = _made(b, tuple(parts), differing)
    found = made[tuple(parts)]
    if found is parts[0]:
        return None
    _note(b, compared, {nodes: node for nodes, node in made.items() if node is not nodes[0]})
    return found


def _made(b: Building, parts: Alike, differing: Mapping[Alike, AtomDims]) -> dict[Alike, Node]:
    """The first part, with its loads at the dimensions that hold what all parts read: what alike nodes become."""
    made: dict[Alike, Node] = {}

    def of(nodes: Alike) -> Node:
        if nodes not in made:
            first, dims = nodes[0], differing.get(nodes)
            inputs = tuple(map(of, zip(*(node.inputs for node in nodes), strict=True)))
            same = dims is None and all(one is other for one, other in zip(inputs, first.inputs, strict=True))
            made[nodes] = first if same else b.copied(first, inputs, dims or first.dims)
        return made[nodes]

    of(parts)
    return made


def _note(b: Building, compared: _Comparison, made: Mapping[Alike, Node]) -> None:
    """Counts what was asked for in the parts as asked for along the axis: unify.py joins the axes of one value. Of a
    value of which each part asks for its own place, it is that value at all of these. Of a value of each part, that of
    the first stands for those of all, by a number of its own."""
    along: dict[Node, list[Alike]] = {}
    for nodes in made:
        along.setdefault(nodes[0], []).append(nodes)
    for value, known in list(b.demands.items()):
        asked = {node: dims for dims, node in known.items()}
        for dims, first in list(known.items()):
            for nodes in along.get(first, ()):
                own = [asked.get(node) for node in nodes]
                every = compared.at([one for one in own if one is not None]) if None not in own else None
                to = number_of_alike(value) if every is None else value
                b.demands.setdefault(to, {}).setdefault(every or dims, made[nodes])


def number_of_alike(value: int) -> int:
    """Of the value of which this one, of the first part, is a part: below all others."""
    return -1 - value


class _Comparison:
    """Of parts, in step. Axes of the first part stand for those of the others."""

    def __init__(self, b: Building, on: AtomDim) -> None:
        self._b, self._atoms, self._on = b, b.atoms, on
        count = b.atoms.elements(on)
        self._paired: list[dict[int, int]] = [{} for _ in range(count)]
        self._taken: list[dict[int, int]] = [{} for _ in range(count)]
        self._differing: dict[Alike, AtomDims] = {}

    def of(self, parts: Alike) -> Mapping[Alike, AtomDims] | None:
        """Loads that the parts have at unlike places -> the dimensions that hold all of these."""
        seen: set[Alike] = set()
        todo = [parts]
        while todo:
            nodes = todo.pop()
            if nodes in seen:
                continue
            seen.add(nodes)
            if not self._match(nodes):
                return None
            todo += zip(*(node.inputs for node in nodes), strict=True)
        return self._differing

    def _match(self, nodes: Alike) -> bool:
        first = _own(nodes[0])
        if any(_is_made_up(node) or _own(node) != first for node in nodes):
            return False
        taps = [tuple(own for _, own in node.windows) for node in nodes]
        bound = [[node.over for node in nodes], *zip(*taps, strict=True)]
        return all(map(self._pair_all, bound)) and self._match_dims(nodes)

    def _match_dims(self, nodes: Alike) -> bool:
        """Of loads, places and masks, and of what running sums run along."""
        first, new = nodes[0], self.at([node.dims for node in nodes])
        old = self._atoms.resolve_dims(first.dims)
        if new is None or old == new:
            return new is not None
        if first.kind is not Kind.LOAD or not self._may_hold(first, old, new):
            return False
        self._differing[nodes] = new
        return True

    def at(self, parts: Sequence[AtomDims]) -> AtomDims | None:
        """The dimensions with all that the parts have of them; None where they are not alike."""
        found = [self._joined([self._atoms.resolve(one) for one in dims]) for dims in zip(*parts, strict=True)]
        known = [dim for dim in found if dim is not None]
        return self._atoms.resolve_dims(known) if len(known) == len(found) else None

    def _may_hold(self, load: Node, old: AtomDims, new: AtomDims) -> bool:
        """Whether a load can be at these dimensions: it has no axis twice, and where sizes vary, or a window is read,
        it stays as it was."""
        sizes = self._b.varying.get(load.source, ())
        fixed = {window.dim for window, _ in load.windows} | {dim for dim, of in enumerate(sizes) if of}
        free = [atom for dim in new for atom in self._atoms.free(dim)]
        return all(old[dim] == new[dim] for dim in fixed) and all(free.count(atom) == 1 for atom in self._on)

    # -- axes

    def _pair_all(self, runs: Sequence[Sequence[int]]) -> bool:
        """Axes that are bound in each part: the same ones, or each part's own of the same sizes, in the same order."""
        resolved = [self._atoms.resolve(run) for run in runs]
        return all(len(run) == len(resolved[0]) for run in resolved) and all(
            self._pair(n, one, other)
            for n, run in enumerate(resolved)
            for one, other in zip(resolved[0], run, strict=True)
        )

    def _pair(self, part: int, one: int, other: int) -> bool:
        if self._atoms.size[one] != self._atoms.size[other]:
            return False
        paired, taken = self._paired[part], self._taken[part]
        return paired.setdefault(one, other) == other and taken.setdefault(other, one) == one

    def _is_same(self, part: int, one: int, other: int) -> bool:
        """Axes that an operator above has paired; those that none has bound are the same in all parts."""
        return self._paired[part].setdefault(one, one) == other and self._taken[part].setdefault(other, other) == one

    def _joined(self, dims: Sequence[AtomDim]) -> AtomDim | None:
        """The dimension with all that the parts have of it; None where they are not alike."""
        if any(len(dim) != len(dims[0]) for dim in dims):
            return None
        found: list[int] = []
        for atoms in zip(*dims, strict=True):
            sections = [self._atoms.sections.get(atom) for atom in atoms]
            known = [section for section in sections if section is not None]
            if len(known) == len(atoms):
                part = self._section(known)
                if part is None:
                    return None
                found += part
            elif known or not all(self._is_same(n, atoms[0], atom) for n, atom in enumerate(atoms)):
                return None
            else:
                found.append(atoms[0])
        return tuple(found)

    def _section(self, sections: Sequence[Section]) -> AtomDim | None:
        """Sections of one dimension that begin as many places apart as one another."""
        first = sections[0]
        if any((one.size, one.step) != (first.size, first.step) for one in sections):
            return None
        inner = self._joined([self._atoms.resolve(one.inner) for one in sections])
        if inner is None or inner != self._atoms.resolve(first.inner):
            return None
        apart = sections[1].start - first.start
        if any(one.start != first.start + n * apart for n, one in enumerate(sections)):
            return None
        if apart == 0:
            return self._atoms.section(first.size, first.start, first.step, inner)
        return _in_steps(self._atoms, first, apart, self._on, inner)


def _in_steps(atoms: Atoms, first: Section, apart: int, on: AtomDim, inner: AtomDim) -> AtomDim | None:
    """The section, and those that begin `apart` places further each, one for each place along `on`."""
    length = atoms.elements(inner)
    last = first.start + apart * (atoms.elements(on) - 1)
    if apart < 0 or first.start < 0 or first.step < 0 or last + first.step * (length - 1) >= first.size:
        return None
    if not inner:
        return atoms.section(first.size, first.start, apart, on)
    if apart == first.step * length:
        return atoms.section(first.size, first.start, first.step, (*on, *inner))
    block, within = divmod(first.start, apart)
    if first.size % apart or within + first.step * (length - 1) >= apart:
        return None  # they overlap, or lie in no blocks
    blocks = atoms.section(first.size // apart, block, 1, on)
    return (*blocks, *atoms.section(apart, within, first.step, inner))


def _is_made_up(node: Node) -> bool:
    """Is it no operator of the graph, or known by what it was made of?"""
    return any(one is not None for one in (node.keep, node.low, node.shifted)) or bool(node.cases)


def _own(node: Node) -> tuple[object, ...]:
    """What the operator is, without what it is applied to."""
    lengths = len(node.inputs), len(node.over), len(node.dims)
    windows = tuple(window for window, _ in node.windows)
    marks = node.f32, node.tf32, node.raw, node.reach
    return (node.kind, node.source, node.value, node.fn, lengths, windows, marks)
