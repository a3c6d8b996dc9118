"""The text of sums and maxima over dimensions of a tile."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.pads import summed
from mugraph.codegen.tile.text import Expr, Prec, Ref, Region, Value
from mugraph.codegen.tile.values import Values


def reduced(out: Values, node: Node, region: Region) -> Value:
    """A sum or a maximum over dimensions of one tile."""
    value = out.need(node.inputs[0], region)
    over = [dim for dim in value.dims if node.over.intersection(dim.axes)]
    if not over:  # only a scalar index is reduced: its loop's accumulator does that
        return value
    joined = node.kind.accumulator
    assert joined is not None
    value = out.f32(value)
    for dim in over:
        value = out.forced(value, dim, joined.neutral)
    pads = {dim: summed(pad) for dim, pad in value.pads.items() if dim not in over}
    function = node.kind.triton
    total = _chosen(function, value, over) if node.kind.chooses else reduction(function, value, over)
    return out.define(out.value_name(node), out.dims(node), pads, region, total)


def _chosen(function: str, value: Value, over: Sequence[Dim]) -> Expr:
    """NaN where an element is NaN, as PyTorch's: `tl.max` alone would pass over it."""
    value.named = True  # it is written three times
    chosen, largest = (reduction(name, value, over).parts for name in (function, "tl.max"))
    is_nan = ("(", Ref(value), " != ", Ref(value), ").to(tl.int32)")
    found = [text for part in largest for text in (is_nan if isinstance(part, Ref) else (part,))]
    return Expr(("tl.where(", *found, ' > 0, float("nan"), ', *chosen, ")"))


def reduction(function: str, value: Value, over: Sequence[Dim]) -> Expr:
    """`function` over the given dimensions, innermost first."""
    if not over:
        return Expr((Ref(value, Prec.MUL),), Prec.MUL)
    if len(over) == len(value.dims):
        return Expr((f"{function}(", Ref(value), ")"))
    axes = sorted((value.dims.index(dim) for dim in over), reverse=True)
    head = f"{function}(" * len(axes)
    return Expr((head, Ref(value), "".join(f", axis={axis})" for axis in axes)))
