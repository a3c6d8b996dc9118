"""Places along axes as numbers (torch.arange), and comparisons of them: these are masks where a mask can say it.

`i[:, None] - i[None, :] < window` compares two places that differ by a whole number; so does `i >= i[:, None]`. A sum
of places times whole numbers is looked through, and so is the size of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.axes import AtomDim
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.nodes import Node, constant_factor, terms

_EXACT = 1 << 24
"""Whole numbers up to this are float32 numbers."""
_ABS = "abs"


@dataclass(frozen=True)
class Line:
    """constant + the sum of places times whole numbers. by: axes of a place -> its factor"""

    constant: int
    by: Mapping[AtomDim, int]


def reach(node: Node, elements: int) -> int | None:
    """The largest size that a number of the node can have, if all of them are whole and none is read; None of any
    other. elements: along a place"""
    found = [i.reach for i in node.inputs]
    if node.kind is Kind.POSITION:
        most = elements + abs(int(node.value))
    elif node.kind is Kind.CONST:
        most = int(abs(node.value)) if node.value.is_integer() else _EXACT + 1
    elif not found or None in found:
        return None
    else:
        sizes = [size for size in found if size is not None]
        if node.fn in (_ABS, "relu") or (node.kind.chooses and not node.kind.reduces):
            most = max(sizes)
        elif node.kind.shifted_by:
            most = sum(sizes)
        elif node.kind.absorbing == 0.0:
            most = sizes[0] * sizes[1]
        else:
            return None
    return most if most <= _EXACT else None


class Places:
    """What a builder asks about places."""

    def __init__(self, builder: Building) -> None:
        self._b = builder

    def along(self, dim: AtomDim) -> Node:
        """The place along a dimension, from 0; of a part of one, where its elements are."""
        b = self._b
        found, run = b.const(0.0), list[int]()
        atoms = b.atoms.resolve(dim)
        for at, atom in enumerate(atoms):
            section = b.atoms.sections.get(atom)
            if section is None:
                run.append(atom)
            if run and (section is not None or at == len(atoms) - 1):
                after = atoms[at:] if section is not None else ()
                found = b.add(found, self._times(b.atoms.elements(after), b.position(tuple(run))))
                run = []
            if section is not None:
                inner = b.add(b.const(float(section.start)), self._times(section.step, self.along(section.inner)))
                found = b.add(found, self._times(b.atoms.elements(atoms[at + 1 :]), inner))
        return found

    def _times(self, factor: int, node: Node) -> Node:
        return self._b.mul(self._b.const(float(factor)), node)

    def decide(self, node: Node) -> bool:
        """Is the value made of places, and finite where the inputs are, but for what masks hide?"""
        if node.keep is not None:
            return self.decide(node.inputs[0]) or node.inputs[0].kind is Kind.CONST
        return Kind.POSITION in _below(node)

    @staticmethod
    def are_all(node: Node) -> bool:
        """Is the value made of places and numbers alone?"""
        kinds = _below(node)
        return Kind.POSITION in kinds and Kind.LOAD not in kinds

    def compared(self, kind: Kind, a: Node, b: Node) -> Node | None:
        """What `a > b`, or `a >= b`, of whole numbers is in masks; None where it is no mask."""
        if a.reach is None or b.reach is None or kind not in (Kind.GREATER, Kind.GREATER_EQUAL):
            return None
        if b.fn == _ABS:  # a > |x|: a > x and a > -x
            (x,) = b.inputs
            parts = [self.compared(kind, a, side) for side in (x, self._times(-1, x))]
            one, other = parts
            return None if one is None or other is None else self._b.mul(one, other)
        if a.fn == _ABS:
            turned = self.compared(Kind.GREATER if kind is Kind.GREATER_EQUAL else Kind.GREATER_EQUAL, b, a)
            return None if turned is None else self._b.masks.opposite(turned)
        line, other = line_of(a), line_of(b)
        if line is None or other is None:
            return None
        by = {dim: line.by.get(dim, 0) - other.by.get(dim, 0) for dim in {**line.by, **other.by}}
        above = line.constant - other.constant - (kind is Kind.GREATER)
        return self._not_negative(Line(above, {dim: factor for dim, factor in by.items() if factor}))

    def _not_negative(self, line: Line) -> Node | None:
        """1 where it is 0 or more."""
        up = [dim for dim, factor in line.by.items() if factor > 0]
        down = [dim for dim, factor in line.by.items() if factor < 0]
        steps = {abs(factor) for factor in line.by.values()} or {1}
        if len(up) > 1 or len(down) > 1 or len(steps) > 1:
            return None
        rows, columns = (side[0] if side else () for side in (up, down))
        if not up and not down:
            return self._b.const(float(line.constant >= 0))
        return self._b.mask(rows, columns, line.constant // steps.pop())


def _below(node: Node) -> set[Kind]:
    """The kinds of all that the value is made of."""
    kinds, seen, todo = set[Kind](), {node}, [node]
    while todo:
        one = todo.pop()
        kinds.add(one.kind)
        todo += (i for i in (*one.inputs, *one.cases) if i not in seen)
        seen.update(todo)
    return kinds


def line_of(node: Node) -> Line | None:
    """A sum of places times whole numbers; None of any other node."""
    if node.kind is Kind.POSITION:
        return Line(int(node.value), {node.dims[0]: 1})
    if node.kind is Kind.CONST:
        return Line(int(node.value), {})
    scaled = constant_factor(node)
    if scaled is not None:
        inner = line_of(scaled[1])
        factor = int(scaled[0])
        return None if inner is None else Line(inner.constant * factor, {d: n * factor for d, n in inner.by.items()})
    for one, other in terms(node)[:1]:
        first, second = line_of(one), line_of(other)
        if first is None or second is None:
            return None
        by = {dim: first.by.get(dim, 0) + second.by.get(dim, 0) for dim in {**first.by, **second.by}}
        return Line(first.constant + second.constant, by)
    return None
