"""A part of a computation that computes a part of its outputs: the same operators over slices of axes that nothing
reduces or loops over.

What a row of a product needs is that row of its left operand, so a program with a slice of its rows is the program for
those rows. Masks, positions and windows keep their places: a slice that begins at row 512 begins
at row 512 of the mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.ir.windows import Window
from mugraph.verification.relations import Relations

Slices = Mapping[str, tuple[int, int]]
"""Axis -> first element and number of elements."""


def restricted(program: TensorProgram, slices: Slices) -> TensorProgram:
    """slices: of axes that `free_axes` names; of others all is kept"""
    return replace(
        program,
        sizes=_sizes(program.sizes, slices),
        ops=_ops(program.ops, program.sizes, slices),
        tensors=tuple(_tensor(tensor, program.sizes, slices) for tensor in program.tensors),
        outputs={value: _tensor(tensor, program.sizes, slices) for value, tensor in program.outputs.items()},
        least={},
    )


def restricted_block(block: BlockGraph, slices: Slices) -> BlockGraph:
    return replace(
        block,
        sizes=_sizes(block.sizes, slices),
        ops=_ops(block.ops, block.sizes, slices),
        tensors=tuple(_tensor(tensor, block.sizes, slices) for tensor in block.tensors),
    )


def _sizes(sizes: Sizes, slices: Slices) -> dict[str, int]:
    return {axis: slices[axis][1] if axis in slices else size for axis, size in sizes.items()}


def _ops(ops: Sequence[Op], sizes: Sizes, slices: Slices) -> tuple[Op, ...]:
    def first(axes: tuple[str, ...]) -> int:
        return sum(slices[a][0] * prod(sizes[b] for b in axes[i + 1 :]) for i, a in enumerate(axes) if a in slices)

    return tuple(
        replace(op, value=op.value + first(op.rows) - first(op.columns)) if op.kind.of_places else op for op in ops
    )


def _tensor(tensor: Tensor, sizes: Sizes, slices: Slices) -> Tensor:
    """Strides stay: what is computed over the fields does not look at them."""
    windows = list(tensor.windows)
    for number, window in enumerate(windows):
        axes = tensor.dims[window.dim]
        places = places_of(tensor, window.dim, sizes, slices)
        positions, _ = window.split(axes)
        first = slices[positions[0]][0] * prod(sizes[a] for a in positions[1:]) if set(positions) & set(slices) else 0
        pad = int(places[0]) * window.spread - (first * window.stride - window.pad)
        windows[number] = replace(window, pad=pad).of_extent(len(places), axes, _sizes(sizes, slices))
    return replace(tensor, windows=tuple(windows))


def places_of(tensor: Tensor, dim: int, sizes: Sizes, slices: Slices) -> NDArray[np.int64]:
    """The places in a dimension that are there, in order."""
    axes = tensor.dims[dim]
    for window in tensor.windows:
        if window.dim == dim:
            return _places_of_window(window, axes, sizes, slices)
    places = np.zeros(1, np.int64)  # never all of a dimension, which may have thousands of millions of them
    for axis in axes:
        start, count = slices.get(axis, (0, sizes[axis]))
        places = (places[:, None] * sizes[axis] + np.arange(start, start + count)).reshape(-1)
    return places


def count_of(tensor: Tensor, dim: int, sizes: Sizes, slices: Slices) -> int:
    """How many there are."""
    if any(window.dim == dim for window in tensor.windows):
        return len(places_of(tensor, dim, sizes, slices))
    return prod(slices[axis][1] if axis in slices else sizes[axis] for axis in tensor.dims[dim])


def _places_of_window(window: Window, axes: Sequence[str], sizes: Sizes, slices: Slices) -> NDArray[np.int64]:
    positions, taps = window.split(axes)
    extent = window.extent(axes, sizes)
    if not set(positions) & set(slices):
        return np.arange(extent)
    inner = prod(sizes[axis] for axis in positions[1:])
    first, count = (n * inner for n in slices[positions[0]])
    start = first * window.stride - window.pad
    reach = (count - 1) * window.stride + (prod(sizes[axis] for axis in taps) - 1) * window.dilation + 1
    start, end = max(0, -(-start // window.spread)), min(extent, -(-(start + reach) // window.spread))
    # Where all of it lies in the pad, or between two elements, one place that is never read is there.
    return np.arange(start, end) if start < end else np.array([min(start, extent - 1)])


def free_axes(program: TensorProgram, blocks: Sequence[BlockGraph], relations: Relations) -> list[frozenset[str]]:
    """Axes that can be sliced, those that must be sliced alike together: nothing reduces them, loops over them or cuts
    them into others, and masks, positions and windows know how to begin at any of their elements.

    relations: without those between tensors of one source
    """
    fixed = set(relations.products).union(*relations.products.values())
    fixed.update(relations.sizes.keys() - program.sizes.keys() - {axis for block in blocks for axis in block.sizes})
    for ops, tensors in (
        (program.ops, (*program.tensors, *program.outputs.values())),
        *((block.ops, block.tensors) for block in blocks),
    ):
        fixed.update(axis for op in ops if op.kind.reduces or op.kind.scans for axis in op.over)
        for group in (group for op in ops if op.kind.of_places for group in (op.rows, op.columns)):
            fixed.update(group[1:])
        for tensor in tensors:
            fixed.update(_fixed_in(tensor))
    fixed.update(axis for block in blocks for axis in block.loop_axes)
    classes: dict[str, set[str]] = {}
    for axis in relations.sizes:
        classes.setdefault(relations.equal.get(axis, axis), set()).add(axis)
    return [frozenset(axes) for axes in classes.values() if not axes & fixed]


def _fixed_in(tensor: Tensor) -> Iterable[str]:
    windows = {window.dim: window for window in tensor.windows}
    for number, dim in enumerate(tensor.dims):
        if number in windows:
            positions, taps = windows[number].split(dim)
            yield from (*positions[0 if windows[number].reverse else 1 :], *taps)
