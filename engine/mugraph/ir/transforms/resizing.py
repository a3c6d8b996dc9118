"""Programs and graphs at other sizes, their memory laid out alike."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import replace
from fractions import Fraction
from math import ceil

from mugraph.ir.block import BlockGraph
from mugraph.ir.masks import resized_all
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.ir.windows import at_sizes, resized


def resize(program: TensorProgram, sizes: Sizes, varying: AbstractSet[str] = frozenset()) -> TensorProgram:
    """The program at other sizes. Strides keep their order and their gaps; outputs stay contiguous. varying: as of
    `resize_tensor`"""
    return replace(
        program,
        sizes={axis: sizes[axis] for axis in program.sizes},
        ops=resized_all(program.ops, program.sizes, sizes, varying),
        tensors=tuple(resize_tensor(tensor, program.sizes, sizes, varying) for tensor in program.tensors),
        outputs={name: resize_tensor(tensor, program.sizes, sizes) for name, tensor in program.outputs.items()},
    )


def resize_block(block: BlockGraph, sizes: Sizes, varying: AbstractSet[str] = frozenset()) -> BlockGraph:
    """The topology at other sizes. varying: as of `resize_tensor`"""
    return replace(
        block,
        sizes={axis: sizes[axis] for axis in block.sizes},
        ops=resized_all(block.ops, block.sizes, sizes, varying),
        tensors=tuple(resize_tensor(tensor, block.sizes, sizes, varying) for tensor in block.tensors),
    )


def resize_tensor(tensor: Tensor, old: Sizes, new: Sizes, varying: Collection[str] = ()) -> Tensor:
    """The tensor with the same layout at other sizes: dimensions in the same order in memory, a dimension whose stride
    left a gap leaves one in proportion, an expanded one (stride 0) stays expanded.

    varying: axes whose sizes are known at run time only, of which `new` has smaller ones: a gap around one of them is
             what lies beyond the part of a tensor that is in use, as of a cache, and the stride stays
    """
    whole = tensor
    other = at_sizes if varying else resized
    windows = (other(window, tensor.dims[window.dim], old, new) for window in tensor.windows)
    tensor = replace(tensor, windows=tuple(windows))
    old_shape, new_shape = whole.shape(old), tensor.shape(new)
    strides = [0] * len(old_shape)
    old_dense, new_dense, around = 1, 1, False
    # Innermost first; of equal strides the later dimension is the inner one.
    for i in sorted(range(len(strides)), key=lambda i: (tensor.strides[i], -i)):
        if tensor.strides[i] == 0:
            continue
        if old_shape[i] > 1:
            strides[i] = max(new_dense, ceil(Fraction(tensor.strides[i], old_dense) * new_dense))
            if around and tensor.strides[i] > old_dense:
                strides[i] = max(new_dense, tensor.strides[i])
            old_dense = tensor.strides[i] * old_shape[i]
        else:
            strides[i] = new_dense  # of a dimension of size 1 the stride says nothing
        new_dense = strides[i] * new_shape[i]
        around = around or not {*varying}.isdisjoint(tensor.dims[i])
    return replace(tensor, strides=tuple(strides))
