"""The algebra's operators on nodes, each giving its canonical form: constants are folded and stand first, zeros and
ones go away, and what is written in several ways (a sigmoid, silu, relu, abs) is one thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log, sqrt

import numpy as np

from mugraph.ir.calls import Corner
from mugraph.ir.ops import Kind, Tf32
from mugraph.ops.algebra.axes import AtomDim, AtomDims, Atoms
from mugraph.ops.algebra.concat import Pieces
from mugraph.ops.algebra.hiding import as_numbers, both, exponential, is_plain, read_parts, replaced
from mugraph.ops.algebra.masks import Masks
from mugraph.ops.algebra.nodes import HIDDEN, Node, constant_factor, factored, hidden, is_scaled, terms
from mugraph.ops.algebra.packed import SHIFTED, field
from mugraph.ops.algebra.places import Places, reach
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.sigmoids import share, shifted

_MOST_NODES = 3000
"""Nested hand-written norms ask for their argument twice each; a region that grows beyond this is no search unit."""


class Primitives:
    """
    atoms:  what axes are made of
    nodes:  in an order in which inputs come before uses
    masks, places, pieces: what is hidden, what counts along axes, and what is in pieces
    every_mask: of matrices those stay masks that are nothing but ones or zeros
    """

    masks: Masks
    places: Places
    pieces: Pieces

    def __init__(self) -> None:
        self.atoms = Atoms()
        self.nodes: list[Node] = []
        self.every_mask = False
        self._f32 = False
        self._tf32: Tf32 = ""
        self._call = -1

    def _add(self, node: Node) -> Node:
        if any(i.cases for i in node.inputs):
            return self.pieces.apply(node)
        if any(i.keep is not None for i in node.inputs):
            raise NotLowerable("minus infinity is added to what no exponential is taken of at once")
        if any(atom in self.atoms.sections for atom in self.atoms.resolve(node.over)):
            raise NotLowerable("a reduction of a part of a dimension was asked for along all of it")
        if len(self.nodes) >= _MOST_NODES:
            raise NotLowerable("the program is too large for one search unit")
        node.call, node.placed = self._call, True
        node.f32 = self._f32 and not node.kind.is_leaf
        node.tf32 = self._tf32 if node.kind.contracts else ""
        node.reach = reach(node, self.atoms.elements(node.dims[0]) if node.kind is Kind.POSITION else 0)
        if any(i.raw for i in node.inputs):
            self._refuse_computed(node)
        self.nodes.append(node)
        return node

    @staticmethod
    def _refuse_computed(node: Node) -> None:
        """Whole numbers that are read may be compared with such, or with places; nothing else is done with them."""
        is_truth = node.kind.opaque is not None and node.kind.opaque.is_truth
        if any(i.raw == SHIFTED for i in node.inputs):
            raise NotLowerable("bits of packed integers are computed with, which is outside the fragment")
        if not is_truth or not all(i.raw or i.reach is not None for i in node.inputs):
            raw = next(i.raw for i in node.inputs if i.raw)
            raise NotLowerable(f"an input of type {raw} is computed with, which is outside the fragment")

    def again(self, node: Node, inputs: tuple[Node, ...], over: AtomDim, dims: AtomDims = ()) -> Node:
        """What the node does, to other operands, as part of the same call. dims: of a LOAD."""
        outer = self._f32, self._tf32, self._call
        if node.placed:  # else it is about to be added, as part of the call at hand
            self._f32, self._tf32, self._call = node.f32, node.tf32, node.call
        made = self._made(node, inputs, over, dims)
        self._f32, self._tf32, self._call = outer
        if not made.hint:
            made.hint = node.hint
        return made

    def copied(self, node: Node, inputs: tuple[Node, ...], dims: AtomDims) -> Node:
        """The same operator, which has its canonical form, of operands that are longer by an axis."""
        outer = self._f32, self._tf32, self._call
        self._f32, self._tf32, self._call = node.f32, node.tf32, node.call
        made = self._add(replace(node, inputs=inputs, dims=dims, placed=False))
        made.reach = node.reach
        self._f32, self._tf32, self._call = outer
        return made

    def make(self, kind: Kind, *inputs: Node, over: AtomDim = (), fn: str = "") -> Node:
        """An operator of a kind that has no canonical form here."""
        return self._add(Node(kind, inputs, over=over, fn=fn))

    def _made(self, node: Node, inputs: tuple[Node, ...], over: AtomDim, dims: AtomDims) -> Node:
        if node.kind is Kind.LOAD:
            if any(dims[window.dim] != self.atoms.resolve(node.dims[window.dim]) for window, _ in node.windows):
                raise NotLowerable("a concatenation of windows is outside the fragment")
            return self._add(replace(node, dims=dims, hint="", placed=False))
        if node.kind.is_leaf or node.fn == HIDDEN:
            raise NotLowerable(f"a concatenation does not reach through {node.kind}")
        return node.kind.meaning(self, inputs, node.fn, over)

    def const(self, value: float) -> Node:
        if value != value or value in (float("inf"), float("-inf")):
            raise NotLowerable("an infinite constant is outside the fragment")
        return self._add(Node(Kind.CONST, value=value))

    constant = const  # as kinds call it

    def loaded(self, source: int, dims: AtomDims, fn: str = "") -> Node:
        """A value that was there before, at these axes; nothing is asked about its type."""
        return self._add(Node(Kind.LOAD, source=source, dims=dims, fn=fn))

    def position(self, along: AtomDim, first: int = 0) -> Node:
        """The place along a dimension, none of which is a section, counted from `first`."""
        along = self.atoms.resolve(along)
        return self._add(Node(Kind.POSITION, dims=(along,), value=float(first))) if along else self.const(float(first))

    def mask(self, rows: AtomDim, columns: AtomDim, diagonal: int, corner: Corner = "") -> Node:
        """1 where the place along `columns` is at most that along `rows` + diagonal, else 0. corner: of a Triangle"""
        rows, columns = self.atoms.resolve_dims((rows, columns))
        if any(atom in self.atoms.sections for atom in (*rows, *columns)):
            raise NotLowerable("a part of a mask is outside the fragment")
        if not corner and not (self.every_mask and rows and columns):
            if self.atoms.elements(columns) - 1 <= diagonal:
                return self.const(1.0)
            if self.atoms.elements(rows) - 1 + diagonal < 0:
                return self.const(0.0)
        return self._add(Node(Kind.MASK, dims=(rows, columns), value=float(diagonal), fn=corner))

    def hide(self, a: Node, keep: Node, low: Node | None = None) -> Node:
        """`a`, but minus infinity where the mask or condition `keep` is 0. low: of Node"""
        if keep.kind is Kind.CONST:
            if keep.value == 0.0:
                raise NotLowerable("a mask hides all of a value")
            return a
        if a.cases:
            raise NotLowerable("a concatenation is masked")
        if low is not None and not is_plain(a):
            return replaced(self, a, keep, low)
        if a.keep is None:
            return hidden(a, keep, low)
        if a.low is not None and read_parts(keep):
            return hidden(as_numbers(self, a), keep)
        return hidden(a.inputs[0], both(self, a.keep, keep), a.low if low is None else low)

    def add(self, a: Node, b: Node) -> Node:
        for one, other in ((a, b), (b, a)):
            if one.keep is not None:
                if one.low is not None and not is_plain(Node(Kind.ADD, (one.inputs[0], other))):
                    return self.add(as_numbers(self, one), other)
                low = None if one.low is None else self.add(one.low, other)
                return self.hide(self.add(one.inputs[0], other), one.keep, low)
        if a.kind is Kind.CONST and b.kind is Kind.CONST:
            return self.const(a.value + b.value)
        if a.kind is Kind.CONST:
            a, b = b, a
        if b.kind is Kind.CONST and b.value == 0.0:
            return a
        if b.kind is Kind.CONST and a.kind is Kind.POSITION and b.value.is_integer():
            return self.position(a.dims[0], int(a.value + b.value))
        function = shifted(self, a, b.value) if b.kind is Kind.CONST else None
        return function or self._add(Node(Kind.ADD, (a, b)))

    def mul(self, a: Node, b: Node) -> Node:
        if a.kind is Kind.CONST and b.kind is Kind.CONST:
            return self.const(a.value * b.value)
        if b.kind is Kind.CONST:
            a, b = b, a
        if a.kind is Kind.CONST:
            return self._scale(a.value, b)
        for one, other in ((a, b), (b, a)):
            if other.kind is Kind.DIV and other.inputs[0].kind is Kind.CONST:
                return self.div(self.mul(other.inputs[0], one), other.inputs[1])
            if other.kind is Kind.UNARY and other.fn == "sigmoid" and other.inputs[0] is one:
                return self.unary("silu", one)
        scaled = constant_factor(a), constant_factor(b)
        if scaled[0] is not None and scaled[1] is not None:
            (one, x), (other, y) = scaled[0], scaled[1]
            return self._scale(one * other, self.mul(x, y))
        return self._add(Node(Kind.MUL, (a, b)))

    def _scale(self, factor: float, x: Node) -> Node:
        if x.keep is not None and factor > 0.0:
            low = None if x.low is None else self._scale(factor, x.low)
            return self.hide(self._scale(factor, x.inputs[0]), x.keep, low)
        if factor == 1.0:
            return x
        scaled = constant_factor(x)
        if scaled is not None:
            return self._scale(factor * scaled[0], scaled[1])
        if x.kind is Kind.DIV and x.inputs[0].kind is Kind.CONST:
            return self.div(self.const(factor * x.inputs[0].value), x.inputs[1])
        return self._add(Node(Kind.MUL, (self.const(factor), x)))

    def sub(self, a: Node, b: Node) -> Node:
        return self.add(a, self.mul(self.const(-1.0), b))

    def div(self, a: Node, b: Node) -> Node:
        if b.kind is Kind.CONST:
            if b.value == 0.0:
                raise NotLowerable("a division by the constant zero")
            return self.mul(self.const(1.0 / b.value), a)
        if b.kind is Kind.DIV and b.inputs[0].kind is Kind.CONST:
            return self.div(self.mul(a, b.inputs[1]), b.inputs[0])
        return share(self, a, b) or self._add(Node(Kind.DIV, (a, b)))

    def sqrt(self, a: Node) -> Node:
        if a.kind is Kind.CONST and a.value >= 0.0:
            return self.const(sqrt(a.value))
        return self._add(Node(Kind.SQRT, (a,)))

    def exp(self, a: Node) -> Node:
        if a.keep is not None:
            return exponential(self, a)
        if a.kind is Kind.CONST and a.value < 700.0:
            return self.const(exp(a.value))
        if self.places.are_all(a):
            return self.opaque(Kind.POWER_OF_TWO, self.mul(self.const(1.0 / log(2.0)), a))
        for one, other in terms(a):
            sign, logarithm = factored(other)
            if logarithm.kind is Kind.LOG and sign == -1.0:
                return self.div(self.exp(one), logarithm.inputs[0])
        return self._add(Node(Kind.EXP, (a,)))

    def maximum(self, a: Node, b: Node) -> Node:
        """The larger of two. Of a value and 0 it is relu, of a value and its negative abs."""
        if a.kind is Kind.CONST and b.kind is Kind.CONST:
            return self.const(max(a.value, b.value))
        if a.kind is Kind.CONST:
            a, b = b, a
        if b.kind is Kind.CONST and b.value == 0.0:
            return self.unary("relu", a)
        for one, other in ((a, b), (b, a)):
            if is_scaled(other, -1.0, one):
                return self.unary("abs", one)
        return self._add(Node(Kind.MAX, (a, b)))

    def minimum(self, a: Node, b: Node) -> Node:
        """The smaller of two."""
        minus = self.const(-1.0)
        return self.mul(minus, self.maximum(self.mul(minus, a), self.mul(minus, b)))

    def amax(self, a: Node, over: Sequence[int]) -> Node:
        """The largest along the atoms. Of a value that is minus infinity where a mask is 0 it has no meaning of its own
        here, and may only be subtracted before an exponential (shifts.py)."""
        if a.keep is not None:
            return self._add(Node(Kind.AMAX, (a.inputs[0],), over=tuple(over), fn=HIDDEN))
        return self._add(Node(Kind.AMAX, (a,), over=tuple(over))) if over else a

    def log(self, a: Node) -> Node:
        return self.opaque(Kind.LOG, a)

    def unary(self, fn: str, a: Node) -> Node:
        return self._add(Node(Kind.UNARY, (a,), fn=fn))

    def opaque(self, kind: Kind, *operands: Node) -> Node:
        if kind.opaque is not None and kind.opaque.undoes_exp and operands[0].kind is Kind.EXP:
            return operands[0].inputs[0]  # as a sum of exponentials along an axis of size 1 is
        found = self.places.compared(kind, *operands) if len(operands) > 1 else None
        if found is not None:
            return found
        if kind is Kind.BIT_AND and (taken := self._taken(*operands)) is not None:
            return taken
        if kind.opaque is not None and all(operand.kind is Kind.CONST for operand in operands):
            return self.const(float(kind.opaque.numbers(*(np.float64(operand.value) for operand in operands))))
        return self._add(Node(kind, operands))

    def _taken(self, x: Node, mask: Node) -> Node | None:
        """A field of packed integers; None of anything else."""
        return field(self, x, int(mask.value)) if x.raw == SHIFTED else None

    def sum(self, a: Node, over: Sequence[int]) -> Node:
        """Sum of `a` over the atoms; an axis `a` does not have counts as so many equal terms."""
        self.masks.refuse_empty(a, tuple(over))
        return self._add(Node(Kind.SUM, (a,), over=tuple(over))) if over else a

    def running(self, a: Node, over: Sequence[int], backwards: bool) -> Node:
        """The sums of `a` up to each place along the atoms, counted row by row; backwards: from each place on. A factor
        that is a constant goes out of them."""
        run = self.atoms.resolve(over)
        if not run:
            return a
        scaled = constant_factor(a)
        if scaled is not None:
            return self._scale(scaled[0], self.running(scaled[1], run, backwards))
        kind = Kind.RUNNING_SUM_BACK if backwards else Kind.RUNNING_SUM
        return self._add(Node(kind, (a,), over=run, dims=(run,)))

    def dot(self, a: Node, b: Node, over: Sequence[int]) -> Node:
        """Sum over the atoms of the product."""
        return self._add(Node(Kind.DOT, (a, b), over=tuple(over))) if over else self.mul(a, b)
