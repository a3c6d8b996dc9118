"""The text of each tile operator over values that are already emitted."""

from __future__ import annotations

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.memory import load
from mugraph.codegen.tile.nodes import Node, TileKind
from mugraph.codegen.tile.pads import Pad, Unknown
from mugraph.codegen.tile.pointwise import constant, keep, pointwise
from mugraph.codegen.tile.products import dot, dot_pads
from mugraph.codegen.tile.reductions import reduced
from mugraph.codegen.tile.text import Expr, Region, Value
from mugraph.codegen.tile.values import Values


def operator(out: Values, node: Node, region: Region) -> Value:
    """The value of `node`, defined in `region`. Raises Rejected where it has no text in Triton."""
    match node.kind:
        case TileKind.LOAD:
            return load(out, node, region)
        case TileKind.CONST:
            return constant(out, node, region)
        case TileKind.SUM | TileKind.AMAX:
            return reduced(out, node, region)
        case TileKind.KEEP:
            return keep(out, node, region)
        case TileKind.MASK:
            dims = out.dims(node)
            expr = Expr((f"tl.where({out.masks.condition(node, dims)}, 1.0, 0.0)",))
            pads: dict[Dim, Pad] = {dim: Unknown.FINITE for dim in dims if dim.padded(out.plan)}
            return out.define(out.value_name(node), dims, pads, region, expr)
        case TileKind.DOT:
            pads = dot_pads(out, node, region)
            return out.define(out.value_name(node), out.dims(node), pads, region, dot(out, node, region))
        case _:
            return pointwise(out, node, region)
