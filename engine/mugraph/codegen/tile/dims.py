"""Dimensions of the kernel's tiles: one wide axis each, except where a matrix product needs two of them as one."""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.codegen.tile.axes import Dim, Plan, Role
from mugraph.codegen.tile.nodes import Node, Nodes
from mugraph.ir.block import BlockGraph
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.ir.packing import ordered


@dataclass(frozen=True, slots=True)
class Product:
    """The dimensions of one matrix product: result[left, right] = sum over inner."""

    left: Dim
    inner: Dim
    right: Dim


def tile_dims(block: BlockGraph, nodes: Nodes, plan: Plan) -> tuple[Dim, ...]:
    """Every wide axis in exactly one Dim. Raises Rejected when a product has a wide batch axis, or a side of several
    axes that cannot be one dimension."""
    groups: dict[str, set[str]] = {}
    for node in nodes.values():
        for axis in sorted(node.axes | node.over):
            if plan[axis].wide:
                groups.setdefault(axis, {axis})
    sides: list[frozenset[str]] = []
    for node in nodes.values():
        if node.kind.contracts:
            left, inner, right = _sides(node, nodes, plan)
            sides += [left, inner, right]
    for side in sides:
        merged = set[str]().union(*(groups[axis] for axis in side))
        for axis in merged:
            groups[axis] = merged
    dims: list[Dim] = []
    for axis, group in groups.items():
        if len(group) == 1:
            dims.append(Dim((axis,)))
        elif axis == min(group):
            dims.append(_merged(group, block, nodes, plan))
    return tuple(dims)


def product_dims(node: Node, nodes: Nodes, plan: Plan, dims: tuple[Dim, ...]) -> Product:
    of = {axis: dim for dim in dims for axis in dim.axes}
    left, inner, right = ({of[axis] for axis in side} for side in _sides(node, nodes, plan))
    if not len(left) == len(inner) == len(right) == 1:
        raise Rejected(f"a side of the product {node.name} has two dimensions.")
    if len(left | inner | right) < 3:
        raise Rejected(f"two sides of the product {node.name} have axes of one dimension.")
    return Product(left.pop(), inner.pop(), right.pop())


def _sides(node: Node, nodes: Nodes, plan: Plan) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    left, right = (frozenset(axis for axis in nodes[name].axes if plan[axis].wide) for name in node.inputs)
    batch = (left & right) - node.over
    if batch:
        raise Rejected(f"batch axis {min(batch)} of the product {node.name} has a tile wider than 1.")
    return left - node.over, node.over, right - node.over


def _merged(group: set[str], block: BlockGraph, nodes: Nodes, plan: Plan) -> Dim:
    """One dimension for `group`. A value that has a part of it repeats along the rest, so nothing may reduce a part of
    it, and no output have a part of it (ir/packing.py)."""
    names = ", ".join(sorted(group))
    for node in nodes.values():
        for axes in (node.over, node.axes if node.kind is Kind.STORE else frozenset[str]()):
            inside = group & axes
            if inside and inside != group:
                what = "stores" if node.kind is Kind.STORE else "reduces"
                raise Rejected(
                    f"a side of a product has the wide axes {names}, but {node.name} {what} only "
                    f"{', '.join(sorted(inside))}."
                )
    if any(plan[axis].role is Role.LOOP for axis in group):
        raise Rejected(f"a side of a product has the wide axes {names}, one of them looped.")
    return Dim(ordered(block, group))
