"""What a block graph computes, over whole tensors in float64: loops and tiles do not exist here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import REDUCING, Kind, Op
from mugraph.ir.tensors import Sizes, Tensor

from tests.support import meaning
from tests.support.meaning import Array


def _triangle(op: Op, block: BlockGraph) -> Array:
    rows, columns = ([block.sizes[a] for a in axes] for axes in (op.rows, op.columns))
    shape = (int(np.prod(rows)), int(np.prod(columns)))
    return np.tril(np.ones(shape), int(op.value)).reshape(*rows, *columns)


def through_windows(array: Array, tensor: Tensor, sizes: Sizes) -> Array:
    """Zeros around each windowed dimension, then what each position's taps read of it."""
    for window in tensor.windows:
        positions, taps = (int(np.prod([sizes[a] for a in axes])) for axes in window.split(tensor.dims[window.dim]))
        if window.spread > 1:
            between = np.arange(1, array.shape[window.dim]).repeat(window.spread - 1)
            array = np.insert(array, between, 0, axis=window.dim)
        around = [(0, 0)] * array.ndim
        around[window.dim] = (0, 0) if window.edge else (window.pad, max(0, -window.rest))
        padded = np.pad(array, around)
        reads = [
            [position * window.stride + tap * window.dilation for tap in range(taps)] for position in range(positions)
        ]
        if window.edge:
            reads = [_inside([place - window.pad for place in own], array.shape[window.dim]) for own in reads]
        array = np.take(padded, np.array(reads).reshape(-1), axis=window.dim)
    return array


def _inside(places: list[int], extent: int) -> list[int]:
    """Those of one position, with one that is there instead of each that is not."""
    there = [place for place in places if 0 <= place < extent]
    return [place if place in there else there[0] if place < 0 else there[-1] for place in places]


def reference(block: BlockGraph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """inputs: tensor name -> array of the tensor's shape. Returns the outputs by tensor name.

    The row maximum is taken out of every exponential, as any softmax may.
    """
    order = list(block.sizes)
    values: dict[str, tuple[tuple[str, ...], Array]] = {}

    def aligned(name: str, axes: list[str]) -> Array:
        own, array = values[name]
        array = np.transpose(array, [own.index(a) for a in axes if a in own])
        return array.reshape([block.sizes[a] if a in own else 1 for a in axes])

    def apply(op: Op) -> Array:
        axes = [a for a in order if any(a in values[i][0] for i in op.inputs)]
        args = [aligned(name, axes) for name in op.inputs]
        if op.kind is Kind.ACCUM:
            return args[0]
        if op.kind is Kind.EXP:
            row = axes.index("kv" if "kv" in axes else "n")
            args = [args[0] - args[0].max(axis=row, keepdims=True)]
        return meaning.apply(op, axes, args, keepdims=False)

    outputs: dict[str, Array] = {}
    for op in block.ops:
        if op.kind is Kind.LOAD:
            tensor = block.tensor(op.tensor)
            shape = [block.sizes[a] for a in tensor.axes]
            values[op.name] = (tensor.axes, through_windows(inputs[op.tensor], tensor, block.sizes).reshape(shape))
        elif op.kind is Kind.CONST:
            values[op.name] = ((), np.array(op.value))
        elif op.kind is Kind.MASK:
            values[op.name] = ((*op.rows, *op.columns), _triangle(op, block))
        elif op.kind is Kind.STORE:
            tensor = block.tensor(op.tensor)
            outputs[op.tensor] = aligned(op.inputs[0], list(tensor.axes)).reshape(tensor.shape(block.sizes))
        else:
            gone = op.over if op.kind in REDUCING else ()
            axes = tuple(a for a in order if any(a in values[i][0] for i in op.inputs) and a not in gone)
            values[op.name] = (axes, apply(op))
    return outputs
