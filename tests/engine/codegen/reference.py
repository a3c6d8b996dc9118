"""What a block graph computes, over whole tensors in float64: loops and tiles do not exist here."""

from __future__ import annotations

from collections.abc import Mapping
from math import erf

import numpy as np
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import REDUCING, Kind, Op
from mugraph.ir.tensors import Sizes, Tensor
from numpy.typing import NDArray

Array = NDArray[np.float64]
_erf = np.vectorize(erf)
_UNARY = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "abs": np.abs,
    "erf": _erf,
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def _triangle(op: Op, block: BlockGraph) -> Array:
    rows, columns = ([block.sizes[a] for a in axes] for axes in (op.rows, op.columns))
    shape = (int(np.prod(rows)), int(np.prod(columns)))
    return np.tril(np.ones(shape), int(op.value)).reshape(*rows, *columns)


def through_windows(array: Array, tensor: Tensor, sizes: Sizes) -> Array:
    """Zeros around each windowed dimension, then what each position's taps read of it."""
    for window in tensor.windows:
        positions, taps = (int(np.prod([sizes[a] for a in axes])) for axes in window.split(tensor.dims[window.dim]))
        around = [(0, 0)] * array.ndim
        around[window.dim] = (window.pad, max(0, -window.rest))
        padded = np.pad(array, around)
        reads = [
            [position * window.stride + tap * window.dilation for tap in range(taps)] for position in range(positions)
        ]
        array = np.take(padded, np.array(reads).reshape(-1), axis=window.dim)
    return array


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
        match op.kind:
            case Kind.ADD:
                return args[0] + args[1]
            case Kind.MUL:
                return args[0] * args[1]
            case Kind.DIV:
                return args[0] / args[1]
            case Kind.SQRT:
                return np.sqrt(args[0])
            case Kind.EXP:
                row = axes.index("kv" if "kv" in axes else "n")
                return np.exp(args[0] - args[0].max(axis=row, keepdims=True))
            case Kind.UNARY:
                return _UNARY[op.fn](args[0])
            case Kind.MAX:
                return np.maximum(args[0], args[1])
            case Kind.AMAX:
                return args[0].max(axis=tuple(axes.index(a) for a in op.over))
            case Kind.SUM:
                return args[0].sum(axis=tuple(axes.index(a) for a in op.over))
            case Kind.DOT:
                product = np.broadcast_arrays(*args)
                return (product[0] * product[1]).sum(axis=tuple(axes.index(a) for a in op.over))
            case Kind.ACCUM:
                return args[0]
            case _:
                raise AssertionError(op.kind)

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
