"""Between which ends a node's numbers lie, by what the program says: its clamps, functions with ends, quotients by the
largest number of a row. And whether all of them are whole.

NaN, which goes through all of this, is not spoken of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite

import numpy as np

from mugraph.ir.calls import TensorInfo
from mugraph.ir.dtypes import ELEMENTS, STORED
from mugraph.ir.ops import Kind
from mugraph.ir.whole import Whole
from mugraph.ops.algebra.nodes import Node, factored
from mugraph.ops.algebra.packed import BYTE, BYTES

Ends = tuple[float, float]
"""The least and the largest number, both included; they may be infinite."""
ANYWHERE: Ends = (-inf, inf)
_OF_FUNCTIONS: Mapping[str, Ends] = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "erf": (-1.0, 1.0)}
_ROUNDINGS = {True: 2.0**-20, False: 2.0**-6}
"""By how much, relatively, a quotient and what it is made of may be rounded up: in float32 throughout, or not."""


class EndsArithmetic:
    """As an arithmetic (kinds/kind.py)."""

    def constant(self, value: float) -> Ends:
        return value, value

    def add(self, a: Ends, b: Ends) -> Ends:
        return a[0] + b[0], a[1] + b[1]

    def mul(self, a: Ends, b: Ends) -> Ends:
        found = [0.0 if 0.0 in (one, other) else one * other for one in a for other in b]
        return min(found), max(found)

    def div(self, a: Ends, b: Ends) -> Ends:
        if b[0] <= 0.0 <= b[1]:
            return ANYWHERE
        return self.mul(a, (1.0 / b[1], 1.0 / b[0]))

    def sqrt(self, a: Ends) -> Ends:
        return 0.0, max(a[1], 0.0) ** 0.5

    def exp(self, a: Ends) -> Ends:
        return 0.0, inf

    def unary(self, fn: str, a: Ends) -> Ends:
        if fn == "relu":
            return max(a[0], 0.0), max(a[1], 0.0)
        if fn == "abs":
            sizes = abs(a[0]), abs(a[1])
            return 0.0 if a[0] <= 0.0 <= a[1] else min(sizes), max(sizes)
        return _OF_FUNCTIONS.get(fn, ANYWHERE)

    def opaque(self, kind: Kind, *operands: Ends) -> Ends:
        assert kind.opaque is not None
        if kind.opaque.is_truth:
            return 0.0, 1.0
        if kind.jumps:  # all of these rise with their operand
            low, high = (float(kind.opaque.numbers(np.float64(end))) if isfinite(end) else end for end in operands[0])
            most = ELEMENTS[kind.stored].largest if kind.stored else inf
            return (low, high) if -most <= low and high <= most else (-most, most)
        return ANYWHERE

    def maximum(self, a: Ends, b: Ends) -> Ends:
        return max(a[0], b[0]), max(a[1], b[1])

    def minimum(self, a: Ends, b: Ends) -> Ends:
        return min(a[0], b[0]), min(a[1], b[1])

    def amax(self, a: Ends, over: object) -> Ends:
        return a

    def __getattr__(self, name: str) -> Callable[..., Ends]:
        return lambda *_: ANYWHERE  # sums, of any number of terms


class Bounds:
    """
    values: what is known of each value number
    mixed:  of a program in several types: only nodes that say so are computed in float32
    """

    def __init__(self, values: Mapping[int, TensorInfo], *, mixed: bool) -> None:
        self._values, self._mixed = values, mixed
        self._ends: dict[int, Ends] = {}
        self._whole: dict[int, bool] = {}

    def ends(self, node: Node) -> Ends:
        known = self._ends.get(id(node))
        if known is None:
            low, high = self._ends_of(node)
            known = self._ends[id(node)] = (low, high) if low == low and high == high else ANYWHERE
        return known

    def are_whole(self, node: Node) -> bool:
        known = self._whole.get(id(node))
        if known is None:
            known = self._whole[id(node)] = self._is_whole(node)
        return known

    def has_type(self, node: Node) -> str:
        """The stored type whose numbers the node's are; "" where none is known."""
        if node.kind is Kind.LOAD and not node.fn:
            dtype = self._values[node.source].dtype
            return dtype if dtype in STORED else ""
        return node.kind.stored

    def _ends_of(self, node: Node) -> Ends:
        if node.cases:
            every = [self.ends(case) for case in node.cases]
            return min(low for low, _ in every), max(high for _, high in every)
        if node.keep is not None:
            return ANYWHERE
        if node.kind is Kind.LOAD:
            one = ELEMENTS.get(BYTE if node.fn == BYTES else self._values[node.source].dtype)
            if one is None or one.torch not in _NARROW:
                return ANYWHERE
            return -one.largest if one.least is None else one.least, one.largest
        if node.kind.is_number:
            return node.value, node.value
        if node.kind.is_leaf:
            return (0.0, 1.0) if node.reach is None else (-node.reach, node.reach)
        found: Ends = node.kind.meaning(EndsArithmetic(), [self.ends(one) for one in node.inputs], node.fn, node.over)
        part = self._of_largest(node)
        return found if part is None else (max(found[0], -part), min(found[1], part))

    def _is_whole(self, node: Node) -> bool:
        if node.cases:
            return all(map(self.are_whole, node.cases))
        if node.keep is not None:
            return False
        if node.kind is Kind.LOAD:
            one = ELEMENTS.get(BYTE if node.fn == BYTES else self._values[node.source].dtype)
            return one is not None and one.is_whole
        if node.kind.is_number:
            return float(node.value).is_integer()
        if node.kind.is_leaf:
            return True
        return bool(node.kind.meaning(Whole(), [self.are_whole(one) for one in node.inputs], node.fn, node.over))

    def _of_largest(self, node: Node) -> float | None:
        """How large `c * x / max(|x|)` is: c, and a little more where something is rounded."""
        if node.kind.by_inverse is None:
            return None
        times, x = factored(node.inputs[0])
        by, largest = self._largest(node.inputs[1], x)
        if by is None or not times or not by:
            return None
        in_float32 = not self._mixed or all(one.f32 or one.kind.is_leaf for one in (node, *node.inputs, *largest))
        return abs(times / by) * (1.0 + _ROUNDINGS[in_float32])

    def _largest(self, node: Node, x: Node) -> tuple[float | None, Sequence[Node]]:
        """(factor, nodes on the way) of a node that is at least the factor times the largest size of a row that `x`
        belongs to."""
        times, of = factored(node)
        if times <= 0.0:
            return None, ()
        if of.kind.chooses and of.kind.is_elementwise:
            for one in of.inputs:
                found, way = self._largest(one, x)
                if found is not None:
                    return times * found, (node, of, *way)
        is_largest = of.kind.chooses and of.kind.reduces and of.inputs[0].fn == "abs"
        if is_largest and _is_in_row(x, of.inputs[0].inputs[0], frozenset(of.over)):
            return times, (node, of)
        return None, ()


_NARROW = frozenset(one.torch for one in STORED.values())


def _is_in_row(x: Node, row: Node, over: frozenset[int]) -> bool:
    """Is `x` one of the numbers that `row` has along the axes `over`?"""
    if x is row:
        return True
    if (x.kind, x.fn, x.value, x.source, len(x.inputs)) != (row.kind, row.fn, row.value, row.source, len(row.inputs)):
        return False
    if x.cases or row.cases or x.keep is not None or row.keep is not None or x.windows or row.windows:
        return False
    if [len(dim) for dim in x.dims] != [len(dim) for dim in row.dims]:
        return False
    places = [pair for one, other in zip(x.dims, row.dims, strict=True) for pair in zip(one, other, strict=True)]
    if not all(one == other or other in over for one, other in places) or tuple(x.over) != tuple(row.over):
        return False
    return all(_is_in_row(one, other, over) for one, other in zip(x.inputs, row.inputs, strict=True))
