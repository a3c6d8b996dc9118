"""Equal operators of a built graph become one: those equal up to the names of axes are equal by now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mugraph.ir.ops import Kind, Tf32
from mugraph.ir.windows import Window
from mugraph.kinds import Accumulator, kind_named
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.finishing.joined_axes import JoinedAxes

_Key = tuple[Kind, tuple[int, ...], tuple[int, ...], int, AtomDims, tuple[Window, ...], float, str, Tf32]


@dataclass
class SharedOperator:
    """An operator of the shared graph; inputs are positions in it. calls: positions of those it is part of."""

    kind: Kind
    inputs: tuple[int, ...]
    over: tuple[int, ...]
    axes: frozenset[int]
    source: int
    dims: AtomDims
    value: float
    fn: str
    f32: bool
    hint: str
    bound: bool
    calls: frozenset[int] = frozenset()
    windows: tuple[Window, ...] = ()
    tf32: Tf32 = ""


class SharedGraph:
    """operators: each after its inputs"""

    def __init__(self, joined: JoinedAxes) -> None:
        self.operators: list[SharedOperator] = []
        self._known: dict[_Key, int] = {}
        self._joined = joined

    def place(self, node: Node, inputs: tuple[int, ...]) -> int:
        """The node's position. Over an axis that an operand lacks there are equal elements to reduce: their sum is a
        product with their number, their maximum is one of them."""
        over = self._joined.dim(node.over)
        parts = node.kind.accumulator
        if node.kind.scans:
            return self._running(node, inputs, over)
        if parts is None:
            return self._op(node, node.kind, inputs, ())
        if not node.kind.contracts:
            return self._reduced(inputs[0], over, node, parts)
        a, b = (self.operators[i].axes for i in inputs)
        left = self._reduced(inputs[0], tuple(x for x in over if x in a and x not in b), node, parts)
        right = self._reduced(inputs[1], tuple(x for x in over if x in b and x not in a), node, parts)
        both = tuple(x for x in over if x in a and x in b)
        missing = tuple(x for x in over if x not in a and x not in b)
        made = self._op(node, node.kind if both else node.kind.terms, (left, right), both)
        return self._repeated(made, missing, node, parts)

    def _running(self, node: Node, inputs: tuple[int, ...], over: tuple[int, ...]) -> int:
        if len(over) > 1:
            raise NotLowerable("a running sum along several axes is outside the fragment")
        if not self.operators[inputs[0]].axes.issuperset(over):
            raise NotLowerable("a running sum of what is the same at all places is outside the fragment")
        return self._op(node, node.kind, inputs, over)

    def _reduced(self, i: int, over: tuple[int, ...], node: Node, parts: Accumulator) -> int:
        present = tuple(x for x in over if x in self.operators[i].axes)
        missing = tuple(x for x in over if x not in self.operators[i].axes)
        made = self._op(node, kind_named(parts.kind), (i,), present) if present else i
        return self._repeated(made, missing, node, parts)

    def _repeated(self, i: int, missing: tuple[int, ...], node: Node, parts: Accumulator) -> int:
        if not missing or not parts.repeated:
            return i
        count = 1.0
        for axis in missing:
            count *= self._joined.sizes[axis]
        constant = self._put(SharedOperator(Kind.CONST, (), (), frozenset(), -1, (), count, "", False, "", False))
        return self._op(node, kind_named(parts.repeated), (constant, i), ())

    def _op(self, node: Node, kind: Kind, inputs: tuple[int, ...], over: tuple[int, ...]) -> int:
        dims = self._joined.dims(node.dims)
        axes = self._joined.axes(node.dims).union(*(self.operators[i].axes for i in inputs))
        axes = axes if kind.scans else axes - set(over)
        over = tuple(sorted(over))
        named = kind is node.kind  # an operator that stands in for the node goes by what it does itself
        hint, bound = (node.hint, node.bound) if named else ("", False)
        calls = frozenset({node.call}) - {-1}
        windows = tuple(replace(window, taps=len(self._joined.dim(taps))) for window, taps in node.windows)
        return self._put(
            SharedOperator(
                kind, inputs, over, axes, node.source, dims, node.value, node.fn, node.f32, hint, bound, calls, windows,
                node.tf32 if kind.contracts else "",
            )
        )  # fmt: skip

    def without(self, sums: Mapping[int, int], place: Mapping[Node, int]) -> tuple[SharedGraph, dict[Node, int]]:
        """The graph with one operand in place of each of these sums, and where its nodes are then."""
        found = SharedGraph(self._joined)
        moved: list[int] = []
        for i, op in enumerate(self.operators):
            kept = sums.get(i)
            moved.append(
                found._put(replace(op, inputs=tuple(moved[j] for j in op.inputs))) if kept is None else moved[kept]
            )
        return found, {node: moved[i] for node, i in place.items()}

    def _put(self, op: SharedOperator) -> int:
        inputs = tuple(sorted(op.inputs)) if op.kind.commutes else op.inputs
        key = (op.kind, inputs, op.over, op.source, op.dims, op.windows, op.value, op.fn, op.tf32)
        if key not in self._known:
            self._known[key] = len(self.operators)
            self.operators.append(op)
        found = self.operators[self._known[key]]
        found.f32 |= op.f32
        found.calls |= op.calls
        if op.hint and (not found.hint or (op.bound and not found.bound)):
            found.hint, found.bound = op.hint, op.bound
        return self._known[key]
