"""The text of sums and maxima over dimensions of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.nodes import Node, TileKind
from mugraph.codegen.tile.pads import summed
from mugraph.codegen.tile.text import Expr, Prec, Ref, Region, Value
from mugraph.codegen.tile.values import Values


def reduced(out: Values, node: Node, region: Region) -> Value:
    """A sum or a maximum over dimensions of one tile."""
    value = out.need(node.inputs[0], region)
    over = [dim for dim in value.dims if node.over.intersection(dim.axes)]
    if not over:  # only a scalar index is reduced: its loop's accumulator does that
        return value
    value = out.f32(value)
    for dim in over:
        value = out.forced(value, dim, 0.0 if node.kind is TileKind.SUM else -inf)
    pads = {dim: summed(pad) for dim, pad in value.pads.items() if dim not in over}
    total = _largest(value, over) if node.kind is TileKind.AMAX else reduction("tl.sum", value, over)
    return out.define(out.value_name(node), out.dims(node), pads, region, total)


def _largest(value: Value, over: Sequence[Dim]) -> Expr:
    """NaN where an element is NaN, as PyTorch's: `tl.max` alone would pass over it."""
    value.named = True  # it is written three times
    largest = reduction("tl.max", value, over)
    is_nan = ("(", Ref(value), " != ", Ref(value), ").to(tl.int32)")
    found = [text for part in largest.parts for text in (is_nan if isinstance(part, Ref) else (part,))]
    return Expr(("tl.where(", *found, ' > 0, float("nan"), ', *largest.parts, ")"))


def reduction(function: str, value: Value, over: Sequence[Dim]) -> Expr:
    """`function` over the given dimensions, innermost first."""
    if not over:
        return Expr((Ref(value, Prec.MUL),), Prec.MUL)
    if len(over) == len(value.dims):
        return Expr((f"{function}(", Ref(value), ")"))
    axes = sorted((value.dims.index(dim) for dim in over), reverse=True)
    head = f"{function}(" * len(axes)
    return Expr((head, Ref(value), "".join(f", axis={axis})" for axis in axes)))
