"""What a pre-defined kernel is, and the product of two tensors as several of them read it from a block graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.ops import Kind, Op, Tf32
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor

Orders = tuple[tuple[str, ...], ...]
"""Of axes in memory."""


def _no_order(program: TensorProgram, op: Op) -> Orders:
    return ()


@dataclass(frozen=True, slots=True)
class PredefinedKernel:
    """
    match: the call that computes exactly the block graph: its text, and what it costs. None where it does not, or where
           the library would copy an operand first
    orders: axes of an operator's value as PyTorch's own kernel may leave them in memory, the one that is expected to be
           faster first; none for values that it is not for
    """

    match: Callable[[BlockGraph], LibraryCall | None]
    orders: Callable[[TensorProgram, Op], Orders] = _no_order


@dataclass(frozen=True, slots=True)
class LoneProduct:
    """A DOT of two loaded tensors, stored as it is, in one type throughout."""

    left: Tensor
    right: Tensor
    out: Tensor
    over: frozenset[str]
    tf32: Tf32 = ""


def lone_product(block: BlockGraph) -> LoneProduct | None:
    """The product that a block graph is, if it is one and nothing else."""
    ops = {op.name: op for op in block.ops}
    dots = [op for op in block.ops if op.kind.contracts]
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    if block.loops or len(dots) != 1 or len(stores) != 1 or len(block.ops) != 2 + len({*dots[0].inputs}):
        return None
    (dot,), (store,) = dots, stores
    first, second = (ops.get(name) for name in dot.inputs)
    if store.inputs != (dot.name,) or first is None or second is None:
        return None
    if first.kind is not Kind.LOAD or second.kind is not Kind.LOAD:
        return None
    left, right, out = block.tensor(first.tensor), block.tensor(second.tensor), block.tensor(store.tensor)
    if dot.f32 or not left.dtype == right.dtype == out.dtype or not {*dot.over} <= {*left.axes} & {*right.axes}:
        return None
    return LoneProduct(left, right, out, frozenset(dot.over), dot.tf32)
