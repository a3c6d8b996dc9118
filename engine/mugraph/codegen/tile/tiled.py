"""A block graph under a schedule, as everything that its kernel's text is written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mugraph.codegen.tile.analyses import Analyses, analyse, varying
from mugraph.codegen.tile.axes import Dim, Plan, plan_axes, widen
from mugraph.codegen.tile.build import tile_nodes
from mugraph.codegen.tile.dims import product_dims, tile_dims
from mugraph.codegen.tile.handover import absolute, relative, storage_of, with_loads, with_maxima
from mugraph.codegen.tile.lookups import with_index_nodes, with_indices
from mugraph.codegen.tile.masks import with_keeps
from mugraph.codegen.tile.nodes import Nodes
from mugraph.codegen.tile.order import total_order
from mugraph.codegen.tile.softmax import SafeSoftmax, safe_softmax
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import Rejected, Unfinished


@dataclass(frozen=True)
class Tiled:
    """
    block:   with the maxima that it loads and stores, and the indices of what it looks up
    dims:    of the tiles
    order:   of these dimensions, in every tile
    softmax: the operators
    facts:   what the emitter asks of them
    left:    what a later kernel has to finish
    """

    block: BlockGraph
    plan: Plan
    dims: tuple[Dim, ...]
    order: tuple[Dim, ...]
    softmax: SafeSoftmax
    facts: Analyses
    left: Unfinished


def tile_graph(
    block: BlockGraph,
    schedule: Schedule,
    handed: Unfinished,
    least: Mapping[str, int],
    *,
    unfinished: bool,
    may_overflow: bool,
    divided: Mapping[str, str] | None = None,
) -> Tiled:
    """Raises Rejected.

    handed: what kernels before it have left unfinished
    least, unfinished, may_overflow, divided: as of `lower`
    """
    block = with_indices(with_loads(block, handed))
    plan = plan_axes(block, schedule, least, divided)
    nodes = _nodes(block, schedule, plan, handed)
    dims = tile_dims(block, nodes, plan)
    sides = {d for n in nodes.values() if n.kind.contracts for d in _sides(n.name, nodes, plan, dims)}
    plan = widen(plan, [dim for dim in dims if dim in sides])
    _check_parts(plan)
    nodes = _nodes(block, schedule, plan, handed)  # a wider tile may have left a loop one iteration
    dims = tile_dims(block, nodes, plan)
    order = _order(block, nodes, plan, dims, schedule.swap)
    softmax = safe_softmax(nodes, plan, varying(nodes, plan), unfinished=unfinished, may_overflow=may_overflow)
    block, softmax, left = with_maxima(block, softmax, {tensor.name for tensor in handed.maxima})
    facts = analyse(softmax.nodes, plan, {tensor.name: tensor for tensor in block.tensors}, handed.storage)
    left = replace(left, storage=storage_of(block, facts, softmax.nodes))
    return Tiled(block, plan, dims, order, softmax, facts, left)


def _nodes(block: BlockGraph, schedule: Schedule, plan: Plan, handed: Unfinished) -> Nodes:
    nodes = with_keeps(tile_nodes(block, schedule, plan))
    return with_index_nodes(relative(nodes, plan, handed) or absolute(nodes, plan, handed), block, plan)


def _check_parts(plan: Plan) -> None:
    for one in plan.values():
        if one.split and (one.part < 1 or one.part % one.block or plan[one.split].wide):
            raise Rejected(f"parts of {one.part} elements of axis {one.name} do not fall into tiles of {one.block}.")


def _sides(name: str, nodes: Nodes, plan: Plan, dims: tuple[Dim, ...]) -> tuple[Dim, Dim, Dim]:
    product = product_dims(nodes[name], nodes, plan, dims)
    return product.left, product.inner, product.right


def _order(block: BlockGraph, nodes: Nodes, plan: Plan, dims: tuple[Dim, ...], swap: bool) -> tuple[Dim, ...]:
    products = [product_dims(n, nodes, plan, dims) for n in nodes.values() if n.kind.contracts]
    of = {axis: dim for dim in dims for axis in dim.axes}
    memory: list[tuple[int, list[Dim]]] = []
    outputs = {tensor.name for tensor in block.outputs}
    for tensor in block.tensors:
        strides = tensor.axis_strides(block.sizes)
        axes = sorted((axis for axis in tensor.axes if axis in of), key=lambda axis: -abs(strides[axis]))
        memory.append((2 if tensor.name in outputs else 1, list(dict.fromkeys(of[axis] for axis in axes))))
    return total_order(dims, products, memory, swap)
