"""The loads and stores of a topology: of which bytes, in which order in memory."""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.ir.block import BlockGraph
from mugraph.ir.halves import are_halves, is_half
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Sizes, Tensor


@dataclass(frozen=True, slots=True)
class Access:
    """A LOAD or STORE. whole: bytes of its tensor, each once. width: of an element. again: another one loads them.
    kept: masks without which it counts for nothing"""

    op: Op
    is_store: bool
    width: int
    whole: int
    innermost: tuple[str, ...]
    is_scattered: bool
    is_looped: bool
    again: bool = False
    kept: tuple[Op, ...] = ()


def is_loaded_elsewhere(block: BlockGraph, tensor: Tensor) -> bool:
    """As a part of what is read as a whole, or of the same memory before."""
    is_later = False
    for other in (block.tensor(op.tensor) for op in block.ops if op.kind is Kind.LOAD):
        if other is tensor:
            is_later = True
        elif are_halves(tensor, other):
            continue
        elif tensor.is_within(other) and not (is_later and other.is_within(tensor)):
            return True
    return False


def is_scattered(tensor: Tensor, sizes: Sizes) -> bool:
    """Is its innermost dimension in memory read through a window?"""
    if is_half(tensor):
        return False
    return any(sizes[axis] > 1 and tensor.strides[window.dim] == 1 for window in tensor.windows
               for axis in tensor.dims[window.dim])  # fmt: skip
