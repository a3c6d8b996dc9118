"""The text of each tile operator over values that are already emitted."""

from __future__ import annotations

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.kinds import KEEP
from mugraph.codegen.tile.memory import load
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.pads import Pad, Unknown
from mugraph.codegen.tile.pointwise import constant, keep, pointwise, position
from mugraph.codegen.tile.products import dot, dot_pads
from mugraph.codegen.tile.reductions import reduced
from mugraph.codegen.tile.running import running
from mugraph.codegen.tile.text import Expr, Region, Value
from mugraph.codegen.tile.values import Values
from mugraph.ir.ops import Kind


def operator(out: Values, node: Node, region: Region) -> Value:
    """The value of `node`, defined in `region`. Raises Rejected where it has no text in Triton."""
    if node.kind is Kind.LOAD:
        return load(out, node, region)
    if node.kind is Kind.CONST:
        return constant(out, node, region)
    if node.kind is Kind.MASK:
        dims = out.dims(node)
        expr = Expr((f"tl.where({out.masks.condition(node, dims, out.nodes)}, 1.0, 0.0)",))
        pads: dict[Dim, Pad] = {dim: Unknown.FINITE for dim in dims if dim.padded(out.plan)}
        return out.define(out.value_name(node), dims, pads, region, expr)
    if node.kind is Kind.POSITION:
        return position(out, node, region)
    if node.kind is KEEP:
        return keep(out, node, region)
    if node.kind.contracts:
        pads = dot_pads(out, node, region)
        return out.define(out.value_name(node), out.dims(node), pads, region, dot(out, node, region))
    if node.kind.reduces:
        return reduced(out, node, region)
    if node.kind.scans:
        return running(out, node, region)
    return pointwise(out, node, region)
