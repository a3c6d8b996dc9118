"""Rows that are looked up: their numbers are loaded once for each tile of the index, and are within the tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.codegen.tile.axes import Dim, Plan
from mugraph.codegen.tile.index import subscript
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.text import Expr, Prec, Ref, Region, Value
from mugraph.codegen.tile.values import Values
from mugraph.ir.block import BlockGraph
from mugraph.ir.lookups import Lookup
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind
from mugraph.ir.tensors import Tensor


def with_indices(block: BlockGraph) -> BlockGraph:
    """With the indices of the tensors that it reads among them: the kernel reads these too."""
    found = {index.name: index for tensor in block.tensors for index in tensor.indices}
    return replace(block, tensors=(*found.values(), *block.tensors)) if found else block


def with_index_nodes(nodes: dict[str, Node], block: BlockGraph, plan: Plan) -> dict[str, Node]:
    """With a load of each index, which no other node has as its operand: the loads of the rows ask for it."""
    read = {node.tensor for node in nodes.values() if node.kind is Kind.LOAD}
    taken, found = {*nodes}, dict[str, Node]()
    for index in (index for tensor in block.tensors if tensor.name in read for index in tensor.indices):
        if all(index.name != node.tensor for node in found.values()):
            name = take(numbered(index.name), taken)
            axes = frozenset(axis for axis in index.axes if axis in plan)
            found[name] = Node(name, Kind.LOAD, axes=axes, tensor=index.name)
    return {**found, **nodes}


def row_values(out: Values, tensor: Tensor, region: Region) -> dict[int, Value]:
    """Dimension -> the numbers of the rows that are read of it."""
    return {
        dim: _rows(out, index, lookup, region)
        for (dim, lookup), index in zip(tensor.looked_up.items(), tensor.indices, strict=True)
    }


def _rows(out: Values, index: Tensor, lookup: Lookup, region: Region) -> Value:
    node = next(node for node in out.nodes.values() if node.kind is Kind.LOAD and node.tensor == index.name)
    number = out.need(node.name, region)
    key = f"{node.name}: row of {lookup.rows}, {lookup.wraps}"
    known = number.region.memo
    if key not in known:
        last, ref = lookup.rows - 1, Ref(number, Prec.ATOM)
        if lookup.wraps:
            again = Ref(number, Prec.ADD)
            found = Expr(("tl.where(", ref, " < 0, ", again, f" + {lookup.rows}, ", again, ")"))
            ref = Ref(out.define(out.fresh(f"{node.name}_from_end"), number.dims, {}, number.region, found,
                                 dtype=number.dtype, named=True))  # fmt: skip
        within = Expr(("tl.minimum(tl.maximum(", ref, f", 0), {last})"))
        known[key] = out.define(out.fresh(f"{node.name}_row"), number.dims, {}, number.region, within,
                                dtype=number.dtype, named=True)  # fmt: skip
    return known[key]


def row_texts(rows: Mapping[int, Value], dims: Sequence[Dim]) -> dict[int, str]:
    """The same as text, in a tile of these dimensions."""
    return {dim: row.name + subscript(row.dims, dims) for dim, row in rows.items()}
