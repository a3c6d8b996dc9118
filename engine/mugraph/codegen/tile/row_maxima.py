"""The text of safe softmax (softmax.py): maxima of rows, what is relative to them, and what follows when they grow."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from mugraph.codegen.tile.index import subscript
from mugraph.codegen.tile.masks import hides
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.pointwise import result_pads
from mugraph.codegen.tile.reductions import reduction
from mugraph.codegen.tile.softmax import SafeSoftmax
from mugraph.codegen.tile.text import Expr, Item, Line, Prec, Ref, Region, Value, uses
from mugraph.codegen.tile.values import Values
from mugraph.ir.ops import Kind


class RowMaxima:
    """Maxima of the rows of one kernel, which `out` writes."""

    def __init__(self, out: Values, softmax: SafeSoftmax) -> None:
        self._out = out
        self._softmax = softmax
        self._rescales: dict[tuple[int, str, float], Value] = {}
        self._old_max: dict[tuple[int, str], str] = {}

    def running(self, node: Node, home: Region, body: Region, before: list[Item], after: list[Item]) -> Value:
        """Keep `name` as the maximum so far; `after` the iteration it takes the new one."""
        dims = self._out.dims(node)
        name, new_name = self._out.fresh("row_max"), self._out.fresh("new_max")
        before.append(Line(name, Expr((self._out.filled(dims, 'float("-inf")'),))))
        tile = self._scaled_max(node, body)
        new = self._out.define(new_name, dims, {}, body, Expr((f"tl.maximum({name}, ", *tile.parts, ")")), named=True)
        after.append(Line(name, uses(Expr((new_name,)), body)))
        new.uses += 1
        if self._may_be_empty(node):
            # A row without a finite logit yet: subtracting its -inf would give NaN.
            parts = ("tl.where(", Ref(new), ' == float("-inf"), 0.0, ', Ref(new), ")")
            new = self._out.define(self._out.fresh("shift"), dims, {}, body, Expr(parts), named=True)
        body.running[node.name] = new
        self._old_max[id(body), node.name] = name
        return Value(name, dims, "f32", {}, home, Expr((name,)), named=True)

    def _scaled_max(self, node: Node, region: Region) -> Expr:
        """max(logits) * scale over the row's part in the tile."""
        logits = self._logits(node, region)
        over = [dim for dim in logits.dims if node.over.intersection(dim.axes)]
        text = reduction("tl.max", logits, over)
        if node.value == 1.0:
            return text
        return Expr((*text.parts, f" * {self._scale(node)}"), Prec.MUL)

    def _logits(self, shift: Node, region: Region) -> Value:
        """The logits, -inf in the lanes beyond the end of the row."""
        value = self._out.f32(self._out.need(shift.inputs[0], region))
        for dim in value.dims:
            if shift.over.intersection(dim.axes):
                value = self._out.forced(value, dim, -inf)
        return value

    def _scale(self, node: Node) -> str:
        return self._out.constants.base_two(self._softmax.scales[node.name], node.value)

    def _may_be_empty(self, node: Node) -> bool:
        """Whether a whole row of a tile may be -inf: not for plain products, but where something is added (a mask
        that is an input), or where a constant mask may leave nothing of it."""
        below = {node.inputs[0], *self._out.facts.below[node.inputs[0]]}
        masks = [self._out.nodes[n.inputs[1]] for name in below if hides(n := self._out.nodes[name])]
        along = (*node.over, node.loop)
        if not all(self._out.masks.sees_first(mask, self._out.nodes, along) for mask in masks):
            return True
        kinds = {self._out.nodes[name].kind for name in below}
        is_masked = any(kind.hides or kind.shifted_by for kind in kinds)
        return is_masked or not any(kind.contracts for kind in kinds)

    def whole(self, node: Node, region: Region) -> Value:
        """A row's maximum that no loop closes: the row is in one tile."""
        return self._out.define(
            self._out.fresh("row_max"), self._out.dims(node), {}, region, self._scaled_max(node, region)
        )

    def exponential(self, node: Node, region: Region) -> Value:
        """exp2(logits - maximum), relative to the running maximum in a loop that keeps one."""
        shift = self._out.nodes[node.inputs[1]]
        current = next((r.running[shift.name] for r in region.chain if shift.name in r.running), None)
        row_max = current or self._finite_max(shift, region)
        logits = self._logits(shift, region)
        below = Ref(row_max, Prec.MUL, subscript(row_max.dims, logits.dims))
        scale = "" if shift.value == 1.0 else f" * {self._scale(shift)}"
        parts = ("tl.exp2(", Ref(logits, Prec.MUL), f"{scale} - ", below, ")")
        name, pads = self._out.value_name(node), result_pads(self._out, node, [logits])
        return self._out.define(name, logits.dims, pads, region, Expr(parts))

    def _finite_max(self, shift: Node, region: Region) -> Value:
        """What exponentials are relative to: the maximum, or 0 where that is -inf.

        A mask may hide all of one part of a row. That part's maximum, -inf, is stored, so that its sums count for
        nothing; but it cannot be subtracted.
        """
        row_max = self._out.need(shift.name, region)
        stored = any(n.kind is Kind.STORE and n.inputs == (shift.name,) for n in self._out.nodes.values())
        if not stored or not self._may_be_empty(shift):
            return row_max
        parts = ("tl.where(", Ref(row_max), ' == float("-inf"), 0.0, ', Ref(row_max), ")")
        return self._out.define(self._out.fresh("shift"), row_max.dims, {}, region, Expr(parts), named=True)

    def rescale(self, node: Node, body: Region) -> Value | None:
        """What an accumulator is multiplied by when the running maxima it is relative to grow: alpha ** degree."""
        degrees: Mapping[str, float] = self._softmax.degrees.get(node.inputs[0], {})
        factors = [self._alpha(name, degrees[name], body) for name in body.running if degrees.get(name)]
        if not factors:
            return None
        product = factors[0]
        for factor in factors[1:]:
            dims = tuple(d for d in self._out.order if d in product.dims or d in factor.dims)
            left = Ref(product, Prec.MUL, subscript(product.dims, dims))
            right = Ref(factor, Prec.ATOM, subscript(factor.dims, dims))
            product = self._out.define(self._out.fresh("alpha"), dims, {}, body, Expr((left, " * ", right), Prec.MUL))
        return product

    def _alpha(self, shift: str, degree: float, body: Region) -> Value:
        key = (id(body), shift, degree)
        if key not in self._rescales:
            new = body.running[shift]
            old = self._old_max[id(body), shift]
            power = "" if degree == 1.0 else f" * {degree}"
            left, right = ("(", ")") if power else ("", "")
            parts = (f"tl.exp2({left}{old} - ", Ref(new, Prec.MUL), f"{right}{power})")
            self._rescales[key] = self._out.define(
                self._out.fresh("alpha"), new.dims, {}, body, Expr(parts), named=True
            )
        return self._rescales[key]
