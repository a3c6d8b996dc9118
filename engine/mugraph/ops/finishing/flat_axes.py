"""Neighbouring axes of a program's tensors that become one: a chain of element-wise operators runs over the memory of
a contiguous tensor, whatever its shape.

Two axes are one where every tensor that has one of them has both, side by side in memory, and every operator has both
or neither, in its axes and in what it reduces. Products are left alone: their sides are axes of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor


def with_flat_axes(program: TensorProgram) -> TensorProgram:
    """The same function of the same memory, over as few axes as it has."""
    if any(op.kind.contracts or op.kind.of_places for op in program.ops):
        return program
    if any(tensor.windows for tensor in program.tensors):
        return program
    while (pair := _pair(program)) is not None:
        program = _joined(program, *pair)
    return program


def _pair(program: TensorProgram) -> tuple[str, str] | None:
    """An axis, and the one next to it that it can be joined with."""
    tensors = (*program.tensors, *program.outputs.values())
    for tensor in tensors:
        for outer, inner in pairwise(tensor.axes):
            if all(_alike(op, outer, inner) for op in program.ops) and all(
                _side_by_side(other, outer, inner, program.sizes) for other in tensors
            ):
                return outer, inner
    return None


def _alike(op: Op, one: str, other: str) -> bool:
    return (one in op.axes) == (other in op.axes) and (one in op.over) == (other in op.over)


def _side_by_side(tensor: Tensor, outer: str, inner: str, sizes: Sizes) -> bool:
    """Has the tensor neither, or both in this order with no gap between them in memory?"""
    axes = tensor.axes
    if outer not in axes and inner not in axes:
        return True
    if (outer, inner) not in pairwise(axes):
        return False
    if 1 in (sizes[outer], sizes[inner]):
        return True
    steps = tensor.axis_strides(sizes)
    return steps[outer] == sizes[inner] * steps[inner]


def _joined(program: TensorProgram, outer: str, inner: str) -> TensorProgram:
    """The program with `inner` running over both axes."""
    sizes = {axis: size for axis, size in program.sizes.items() if axis != outer}
    sizes[inner] *= program.sizes[outer]

    def rest(axes: Sequence[str]) -> tuple[str, ...]:
        return tuple(axis for axis in axes if axis != outer)

    ops = tuple(replace(op, axes=rest(op.axes), over=rest(op.over)) for op in program.ops)
    tensors = tuple(_tensor(tensor, outer, inner, program.sizes) for tensor in program.tensors)
    outputs = {value: _tensor(tensor, outer, inner, program.sizes) for value, tensor in program.outputs.items()}
    return replace(program, sizes=sizes, tensors=tensors, ops=ops, outputs=outputs)


def _tensor(tensor: Tensor, outer: str, inner: str, sizes: Sizes) -> Tensor:
    if outer not in tensor.axes:
        return tensor
    place = {axis: number for number, dim in enumerate(tensor.dims) for axis in dim}
    first, last = place[outer], place[inner]
    dim = tuple(axis for number in range(first, last + 1) for axis in tensor.dims[number] if axis != outer)
    stride = tensor.strides[last] if sizes[inner] > 1 or first == last else tensor.strides[first]
    dims = (*tensor.dims[:first], dim, *tensor.dims[last + 1 :])
    return replace(tensor, dims=dims, strides=(*tensor.strides[:first], stride, *tensor.strides[last + 1 :]))
