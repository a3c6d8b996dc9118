"""Shared memory a kernel will need, estimated before it is compiled (MCFuser's pruning rule 4)."""

from __future__ import annotations

from math import prod

from mugraph.codegen.tile.analyses import Analyses
from mugraph.codegen.tile.axes import Dim, Plan
from mugraph.codegen.tile.nodes import Nodes
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.dtypes import ITEMSIZE
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.targets import Target

SLACK = 1.2
"""The estimate may be this much above the device's limit: the compiler reuses buffers (MCFuser, rule 4)."""


def shared_estimate(
    block: BlockGraph, nodes: Nodes, facts: Analyses, plan: Plan, dims: tuple[Dim, ...], schedule: Schedule
) -> int:
    """Bytes: each load that feeds a product, or any where there is none and loads are ahead, once per stage in flight
    when it is in a loop."""
    fed = {name for node in nodes.values() if node.kind.contracts for name in node.inputs}
    ahead = schedule.tiles_ahead(products=bool(fed))
    if not fed and ahead:
        fed = {node.name for node in nodes.values() if node.kind is Kind.LOAD and facts.vary[node.name]}
    total = 0
    for name in sorted(fed):
        node = nodes[name]
        if node.kind is not Kind.LOAD:
            continue
        elements = prod(dim.extent(plan) for dim in dims if node.axes.intersection(dim.axes))
        stages = ahead if facts.vary[name] else 1
        total += elements * ITEMSIZE[block.tensor(node.tensor).dtype] * stages
    return total


def check_shared(need: int, target: Target) -> None:
    """Raises Rejected when `need` bytes are more than a block of the device may have."""
    if need > SLACK * target.shared:
        raise Rejected(
            f"the kernel needs about {need // 1024} KB of shared memory (estimated); "
            f"{target.name} has {target.shared // 1024} KB a block."
        )
