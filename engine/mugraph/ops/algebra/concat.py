"""Concatenations: values that differ from place to place along an axis of few places, until a sum takes them apart.

`cat((-x2, x1), -1)` at the axes (p, d), p of extent 2, is -x2[d] where p is 0 and x1[d] where p is 1. Element-wise
operators and sums over other axes work on each of the two; a sum over p adds them: the product of two rotated vectors
is a sum of two products over the halves. Such a value is no operator of the graph. Where no sum removes its axis it is
an output: there it is the sum of its pieces, each times a mask of its places, of which a kernel makes one `tl.where`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from math import gcd

from mugraph.ir.ops import Kind
from mugraph.kinds import kind_named
from mugraph.ops.algebra.axes import AtomDim
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.nodes import Node, in_pieces
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.rolled import rolled

MOST = 8
"""Pieces of a concatenation: each is computed by operators of its own, where they are no one value (rolled.py)."""
_TOO_MANY = f"a concatenation of more than {MOST} pieces is outside the fragment"


class Pieces:
    """What a builder asks about concatenations."""

    def __init__(self, builder: Building) -> None:
        self._b = builder

    def joined(
        self,
        lengths: Sequence[int],
        dim: AtomDim,
        ask: Callable[[int, AtomDim], Node],
        instead: Callable[[], Node | None] = lambda: None,
    ) -> Node:
        """Operands of these lengths one after the other, at `dim` of the result.

        ask: operand `i` at its dimension. instead: another way to write the result, where there are too many pieces
        """
        atoms = self._b.atoms
        ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
        dim = atoms.resolve(dim)
        if len(dim) == 1 and dim[0] in atoms.sections:
            section = atoms.sections[dim[0]]
            low, high = sorted((section.start, section.last(atoms.elements(section.inner))))
            for i, (end, length) in enumerate(zip(ends, lengths, strict=True)):
                if end - length <= low and high < end:
                    return ask(i, atoms.section(length, section.start - end + length, section.step, section.inner))
        size, alike = gcd(*lengths), len(set(lengths)) == 1
        if not alike and ends[-1] // size > MOST and (found := instead()) is not None:
            return found
        place, rest = atoms.regroup(dim, (ends[-1] // size, size))
        on = atoms.free(place)
        many = atoms.elements(on) > MOST
        if many and not alike:
            raise NotLowerable(_TOO_MANY)
        cases: list[Node] = []
        for at in product(*(range(atoms.size[atom]) for atom in on)):
            n = self._counted(atoms.replaced(place, self._fixed(on, at)))
            i = next(i for i, end in enumerate(ends) if n * size < end)
            within = n - (ends[i] - lengths[i]) // size
            cases.append(ask(i, (*atoms.section(lengths[i] // size, within, 1, ()), *rest)))
        whole = rolled(self._b, on, cases)
        if whole is None and many:
            whole = instead()
            if whole is None:
                raise NotLowerable(_TOO_MANY)
        return whole or self.cases(on, cases)

    def cases(self, on: AtomDim, nodes: Sequence[Node]) -> Node:
        """The value that is one of these at each place along `on`, counted row by row."""
        if any(node.keep is not None for node in nodes):
            raise NotLowerable("minus infinity is concatenated")
        if len(nodes) == 1:
            return nodes[0]
        return in_pieces(nodes, on)

    def apply(self, node: Node) -> Node:
        """An operator that was about to be added, on operands of which one is a concatenation."""
        b = self._b
        on = b.atoms.resolve(next(i.on for i in node.inputs if i.cases))
        over = b.atoms.resolve(node.over)
        gone = [atom for atom in on if atom in over]
        if gone and node.kind.scans:
            raise NotLowerable("a running sum goes through the pieces of a concatenation")
        if gone and len(gone) < len(on):
            raise NotLowerable("a part of a concatenation's pieces is summed")
        rest = tuple(atom for atom in over if atom not in gone)
        results: list[Node] = []
        for at in product(*(range(b.atoms.size[atom]) for atom in on)):
            by = self._fixed(on, at)
            done: dict[Node, Node] = {}
            inputs = tuple(self._at(i, by, done) for i in node.inputs)
            self._remember(by, done)
            results.append(b.again(node, inputs, rest))
        if not gone:
            return self.cases(on, results)
        return self._joined(node, results)  # it reduces: `over` is not empty

    def written(self, node: Node) -> Node:
        """An output as a value of the graph. A piece has a place along the axes of a concatenation, and zeros at the
        others: masks along these axes keep it where it is."""
        if not node.cases:
            return node
        on = self._b.atoms.resolve(node.on)
        parts = [self._b.mul(self._only(on, n), self.written(case)) for n, case in enumerate(node.cases)]
        return reduce(self._b.add, parts)

    def _only(self, on: AtomDim, n: int) -> Node:
        """1 at the place `n`, counted row by row, else 0."""
        upto = self._b.mask((), on, n)
        return upto if n == 0 else self._b.mul(upto, self._b.mask(on, (), -n))

    def _fixed(self, on: Sequence[int], at: Sequence[int]) -> dict[int, AtomDim]:
        """Sections of one element for these atoms."""
        atoms = self._b.atoms
        return {atom: atoms.section(atoms.size[atom], n, 1, ()) for atom, n in zip(on, at, strict=True)}

    def _counted(self, place: AtomDim) -> int:
        """The index that sections of one element say, row by row."""
        atoms, count = self._b.atoms, 0
        for atom in place:
            count = count * atoms.size[atom] + atoms.sections[atom].start
        return count

    def _at(self, node: Node, by: dict[int, AtomDim], done: dict[Node, Node]) -> Node:
        """The value at one place along the axes in `by`."""
        if node not in done:
            done[node] = self._made(node, by, done)
        return done[node]

    def _made(self, node: Node, by: dict[int, AtomDim], done: dict[Node, Node]) -> Node:
        b = self._b
        if node.cases:
            return self._chosen(node, by, done)
        if node.kind is Kind.LOAD or node.kind.of_places:
            if not any(atom in by for dim in node.dims for atom in b.atoms.free(dim)):
                return node
            if node.kind is Kind.MASK:
                raise NotLowerable("a mask over the pieces of a concatenation is outside the fragment")
            dims = tuple(b.atoms.replaced(dim, by) for dim in node.dims)
            if node.kind is Kind.POSITION:
                return b.add(b.const(node.value), b.places.along(dims[0]))
            return b.again(node, (), (), dims)
        over = b.atoms.resolve(node.over)
        if node.kind.scans and any(atom in by for atom in over):
            raise NotLowerable("a running sum goes through the pieces of a concatenation")
        if any(atom in by for atom in over):
            return self._summed(node, over, by)
        inputs = tuple(self._at(i, by, done) for i in node.inputs)
        keep = None if node.keep is None else self._at(node.keep, by, done)
        low = None if node.low is None else self._at(node.low, by, done)
        if keep is node.keep and all(one is other for one, other in zip(inputs, node.inputs, strict=True)):
            return node
        return b.again(node, inputs, over) if keep is None else b.hide(inputs[0], keep, low)

    def _summed(self, node: Node, over: AtomDim, by: dict[int, AtomDim]) -> Node:
        """A reduction along axes in `by`, as a norm's over what is rotated after it: its axes are its own. It is made
        of one of each piece, as it is where pieces alone are asked for (rows.py)."""
        gone = [atom for atom in over if atom in by]
        rest = tuple(atom for atom in over if atom not in by)
        left = {atom: dim for atom, dim in by.items() if atom not in gone}
        parts: list[Node] = []
        for at in product(*(range(self._b.atoms.size[atom]) for atom in gone)):
            done: dict[Node, Node] = {}
            inputs = tuple(self._at(i, left | self._fixed(gone, at), done) for i in node.inputs)
            parts.append(self._b.again(node, inputs, rest))
        return self._joined(node, parts)

    def _joined(self, node: Node, parts: Sequence[Node]) -> Node:
        """A reduction whose parts were reduced."""
        assert node.kind.accumulator is not None
        join = kind_named(node.kind.accumulator.joins)
        return reduce(lambda x, y: join.meaning(self._b, (x, y), "", ()), parts)

    def _chosen(self, node: Node, by: dict[int, AtomDim], done: dict[Node, Node]) -> Node:
        """Of a concatenation's pieces those that are left when some of its axes are fixed."""
        atoms = self._b.atoms
        on = atoms.resolve(node.on)
        left = tuple(atom for atom in on if atom not in by)
        places = product(*(range(atoms.size[atom]) for atom in on))
        wanted = {atom: atoms.sections[dim[0]].start for atom, dim in by.items()}
        kept = [
            case
            for case, at in zip(node.cases, places, strict=True)
            if all(wanted.get(atom, n) == n for atom, n in zip(on, at, strict=True))
        ]
        return self.cases(left, [self._at(case, by, done) for case in kept])

    def _remember(self, by: dict[int, AtomDim], done: dict[Node, Node]) -> None:
        """What was asked for along all places counts as asked for at the fixed ones too: asked again, it is not made
        twice."""
        atoms = self._b.atoms
        for known in self._b.demands.values():
            for dims, node in list(known.items()):
                made = done.get(node)
                if made is not None and made is not node:
                    known.setdefault(tuple(atoms.replaced(dim, by) for dim in dims), made)
