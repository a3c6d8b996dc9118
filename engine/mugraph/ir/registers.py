"""What stays in registers between two operators of a block graph: the rules of thread graphs (Mirage §4.2, Table 1).

They are those of the kernels that Triton compiles for Ampere and Hopper.

- What is element-wise takes its operands from registers and leaves its result there; so does a reduction, of which
  partial results alone go from warp to warp through shared memory.
- The result of a DOT is an accumulator's fragment in registers. Its operands are read from shared memory. On Hopper a
  left operand that comes from another product's fragment stays in registers, but which operand is on the left, and
  whether there are rows enough for those instructions, is the schedule's to say; a thread graph is the topology's, and
  has to be one under every schedule.
- An ACCUM lives as long as its loop, a STORE writes to device memory, a LOAD is prefetched into shared memory: they
  belong to the block graph. What runs in another loop, or in another pass over it, is not there at the same time.
- Elements may lie in other registers than where they are needed: a product's lie in its fragment, a loaded tile's as
  they do in memory. Triton moves a loaded tile over before anything is computed from it. It does not where a SUM, an
  AMAX or an ACCUM of loaded values goes into what is computed: then that value itself goes through shared memory where
  it meets a product's tile, or one of another order in memory, and its thread graph ends. What a reduction leaves, a
  number for each row, may be moved over as its partial results are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.placement import left_behind, varying

THREAD_LEVEL = frozenset(kind for kind in Kind if kind.is_elementwise or kind.reduces or kind.scans)
"""What a thread graph may hold besides constants."""


@dataclass(frozen=True, slots=True)
class _Lie:
    """Where the elements of a value lie.

    order:   fastest axes in memory of the tiles it was loaded from; none for a number for each row
    product: in the fragment of a product
    fixed:   not to be had elsewhere but by an exchange of the value itself
    """

    order: frozenset[str] = frozenset()
    product: bool = False
    fixed: bool = False


def leaving(block: BlockGraph) -> Callable[[Op, Op], str]:
    """For a value and an operator that uses it: why it does not stay in registers between the two, "" if it does."""
    vary, left = varying(block), left_behind(block)
    lies = _lies(block)

    def reason(value: Op, user: Op) -> str:
        for op in (value, user):
            if op.kind not in THREAD_LEVEL:
                return f"{op.name} is {op.kind}, which is no operator of thread graphs"
        if user.kind.contracts:
            return f"{user.name} reads {value.name} from shared memory, as a product does its operands"
        if vary[value.name] != vary[user.name] or left[value.name] != left[user.name]:
            return f"{user.name} runs in another phase than {value.name}"
        here, there = lies[value.name], lies[user.name]
        tile = user.kind.is_elementwise and len(value.axes) > 1 and bool(here.order)
        if tile and here.fixed and (there.product or here.order != there.order):
            return f"{user.name} needs the elements of {value.name} in registers of other threads"
        return ""

    return reason


def _lies(block: BlockGraph) -> dict[str, _Lie]:
    tensors = {tensor.name: tensor for tensor in block.tensors}
    axes = {op.name: op.axes for op in block.ops}
    lies: dict[str, _Lie] = {}
    for op in block.ops:
        operands = [lies.get(name, _Lie()) for name in op.inputs]
        match op.kind:
            case Kind.LOAD if op.tensor in tensors:
                strides = tensors[op.tensor].axis_strides(block.sizes)
                fastest = sorted((axis for axis in op.axes if strides.get(axis)), key=lambda axis: abs(strides[axis]))
                lie = _Lie(frozenset(fastest[:1]))
            case kind if kind.contracts and _is_of_matrices(op, axes):
                lie = _Lie(product=True)
            case kind if kind.reduces:
                product = any(operand.product for operand in operands)
                lie = _Lie(product=product, fixed=not product)
            case Kind.ACCUM:
                product = any(operand.product for operand in operands)
                order = frozenset[str]().union(*(operand.order for operand in operands))
                lie = _Lie(order, product, fixed=not product)
            case _:
                peers = [lies[name] for name in op.inputs if axes.get(name) == op.axes] or operands
                product = any(peer.product for peer in peers)
                ruling = [peer for peer in peers if peer.fixed and peer.order] or peers
                order = frozenset[str]().union(*(peer.order for peer in ruling))
                lie = _Lie(order, product, fixed=not product and any(operand.fixed for operand in operands))
        lies[op.name] = lie
    return lies


def _is_of_matrices(op: Op, axes: Mapping[str, tuple[str, ...]]) -> bool:
    """Has each operand an axis of the result that the other one lacks? A vector's product is multiplied and summed."""
    sides = [set(axes.get(name, ())) for name in op.inputs]
    return all((side - other) - set(op.over) for side, other in zip(sides, reversed(sides), strict=True))
