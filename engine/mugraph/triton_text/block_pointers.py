"""Blocks of a tensor, as tl.make_block_ptr and tl.make_tensor_descriptor name them: the addresses of their elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.handles import BlockPointer
from mugraph.triton_text.ints import Bools, every, total
from mugraph.triton_text.language import is_host
from mugraph.triton_text.tiles import Pointers, of_shape


def block_pointer(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> BlockPointer:
    return BlockPointer(base, tuple(shape), tuple(strides), tuple(offsets), tuple(block_shape))


def descriptor(base: Any, shape: Any, strides: Any, block_shape: Any, **_: Any) -> BlockPointer:
    return BlockPointer(base, tuple(shape), tuple(strides), (0,) * len(shape), tuple(block_shape), True)


def advanced(of: Arithmetic, base: BlockPointer, offsets: Any) -> BlockPointer:
    moved = tuple(
        a + b if is_host(a) and is_host(b) else of.binary("+", a, b) for a, b in zip(base.offsets, offsets, strict=True)
    )
    return BlockPointer(base.base, base.shape, base.strides, moved, base.block, base.checked)


def at(block: BlockPointer, offsets: Any) -> BlockPointer:
    """Of a descriptor, whose every access says where."""
    return BlockPointer(block.base, block.shape, block.strides, tuple(offsets), block.block, True)


def lanes(of: Arithmetic, block: BlockPointer, boundary_check: Any) -> tuple[Pointers, Bools | None]:
    """The address of each element, and which of them are in the tensor, where that is asked."""
    rank = len(block.block)
    checked = range(rank) if block.checked else tuple(boundary_check or ())
    base = of_shape(block.base, block.block)
    assert isinstance(base, Pointers)
    parts: list[NDArray[np.int64]] = [*base.offsets.parts]
    conditions: list[NDArray[np.bool_]] = []
    for at in range(rank):
        along = np.arange(block.block[at]).reshape(1, *(-1 if d == at else 1 for d in range(rank)))
        first, size, stride = (
            of.ints(v).whole().reshape(-1, *(1,) * rank)
            for v in (block.offsets[at], block.shape[at], block.strides[at])
        )
        parts.append((first + along) * stride)
        if at in checked:
            conditions.append((first + along >= 0) & (first + along < size))
    offsets = total(block.block, parts, "int64")
    mask = every(block.block, conditions) if conditions else None
    return Pointers(base.memory, offsets), mask
