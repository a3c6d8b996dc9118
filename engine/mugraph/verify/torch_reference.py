"""A tensor program in torch, in float64: exact, or with what a way of rounding (roundings.py) loses.

Runs on the device its inputs are on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import inf
from typing import Protocol, cast

import torch
from torch import Tensor

from mugraph.ir.masks import diagonal
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.ir.tensors import Tensor as Layout
from mugraph.ops.functions.unary import UNARY
from mugraph.verify.evaluate import ancestors


@dataclass(frozen=True)
class Value:
    """data: float64, one dimension per axis, in the order of `axes`."""

    data: Tensor
    axes: tuple[str, ...]


class Rounding(Protocol):
    """What is lost on the way: operands of an operator before it is computed, its result after."""

    def operand(self, op: Op, position: int, data: Tensor) -> Tensor: ...
    def result(self, op: Op, operands: Sequence[Tensor], data: Tensor) -> Tensor: ...


class Exact:
    """Nothing is lost."""

    def operand(self, op: Op, position: int, data: Tensor) -> Tensor:
        return data

    def result(self, op: Op, operands: Sequence[Tensor], data: Tensor) -> Tensor:
        return data


def evaluate(
    program: TensorProgram,
    inputs: Mapping[str, Tensor],
    rounding: Rounding | None = None,
    wanted: Collection[str] | None = None,
) -> dict[str, Value]:
    """Value name -> its value.

    inputs:   tensor name -> tensor of the storage type, in PyTorch's shape
    rounding: none: exact
    wanted:   values to compute; others are let go as soon as nothing needs them. All if not given.
    """
    rounding = rounding or Exact()
    values: dict[str, Value] = {}
    masks = {op.name for op in program.ops if op.kind is Kind.MASK}
    device = next(iter(inputs.values())).device
    needed = ancestors(program.ops, program.outputs if wanted is None else wanted)
    ops = [op for op in program.ops if wanted is None or op.name in needed]
    last = {name: op.name for op in ops for name in op.inputs}
    for op in ops:
        if op.kind is Kind.LOAD:
            tensor = program.tensor(op.tensor)
            sizes = [program.sizes[axis] for axis in tensor.axes]
            data = _through_windows(inputs[tensor.name], tensor, program.sizes).reshape(sizes).to(torch.float64)
            values[op.name] = Value(data, tensor.axes)
        elif op.kind is Kind.CONST:
            values[op.name] = Value(torch.tensor(op.value, dtype=torch.float64, device=device), ())
        elif op.kind is Kind.MASK:
            values[op.name] = _mask(op, program.sizes, device)
        else:
            operands = [values[name] for name in op.inputs]
            given = [Value(rounding.operand(op, at, v.data), v.axes) for at, v in enumerate(operands)]
            value = _compute(op, given)
            if op.kind is Kind.MUL:
                value = _cleared(value, [o for o, name in zip(operands, op.inputs, strict=True) if name in masks])
            values[op.name] = Value(rounding.result(op, [v.data for v in operands], value.data), value.axes)
        if wanted is not None:
            for name in {name for name in op.inputs if last[name] == op.name and name not in wanted}:
                del values[name]
    return values


def _through_windows(data: Tensor, tensor: Layout, sizes: Sizes) -> Tensor:
    """The tensor with one place for each position and tap in a windowed dimension, zero where there is none."""
    for window in tensor.windows:
        shape = list(data.shape)
        shape[window.dim] = 1
        padded = torch.cat((data, data.new_zeros(shape)), window.dim)
        places = torch.tensor(window.places(tensor.dims[window.dim], sizes), device=data.device)
        data = padded.index_select(window.dim, places % padded.shape[window.dim])
    return data


def _mask(op: Op, sizes: Mapping[str, int], device: torch.device) -> Value:
    def places(axes: tuple[str, ...]) -> Tensor:
        place = torch.zeros((), dtype=torch.int64, device=device)
        for axis in axes:
            place = place[..., None] * sizes[axis] + torch.arange(sizes[axis], device=device)
        return place

    rows, columns = places(op.rows), places(op.columns)
    data = columns <= rows.reshape(rows.shape + (1,) * columns.dim()) + diagonal(op)
    return Value(data.to(torch.float64), (*op.rows, *op.columns))


def _cleared(product: Value, masks: list[Value]) -> Value:
    """The product, exactly zero where a factor that is a mask is: also where the other factor, an exponential, is
    infinite, which the program adds minus infinity to before."""
    data = product.data
    for mask in masks:
        data = data.masked_fill(_align(mask.data, mask.axes, product.axes) == 0, 0.0)
    return Value(data, product.axes)


def outputs(program: TensorProgram, values: Mapping[str, Value]) -> dict[str, Tensor]:
    """Output tensor name -> its numbers, float64, in PyTorch's shape."""
    results: dict[str, Tensor] = {}
    for name, tensor in program.outputs.items():
        value = values[name]
        order = [value.axes.index(axis) for axis in tensor.axes]
        results[tensor.name] = value.data.permute(order).reshape(tensor.shape(program.sizes))
    return results


def _compute(op: Op, operands: list[Value]) -> Value:
    if op.kind in (Kind.SUM, Kind.DOT):
        return _reduce(op, operands)
    if op.kind is Kind.AMAX:
        (value,) = operands
        over = [value.axes.index(axis) for axis in op.over]
        return Value(value.data.amax(over), tuple(axis for axis in value.axes if axis not in op.over))
    axes = tuple(dict.fromkeys(axis for operand in operands for axis in operand.axes))
    data = [_align(operand.data, operand.axes, axes) for operand in operands]
    match op.kind:
        case Kind.ADD:
            return Value(data[0] + data[1], axes)
        case Kind.MUL:
            return Value(data[0] * data[1], axes)
        case Kind.DIV:
            return Value(data[0] / data[1], axes)
        case Kind.SQRT:
            return Value(torch.sqrt(data[0]), axes)
        case Kind.MAX:
            return Value(torch.maximum(data[0], data[1]), axes)
        case Kind.EXP:
            return Value(torch.exp(data[0]), axes)
        case Kind.UNARY:
            return Value(unary(op.fn)(data[0]), axes)
        case _:
            raise ValueError(f"{op.kind} is no operator of a tensor program")


def _reduce(op: Op, operands: list[Value]) -> Value:
    names = {axis: i for i, axis in enumerate(dict.fromkeys(axis for operand in operands for axis in operand.axes))}
    kept = tuple(axis for axis in names if axis not in op.over)
    arguments = [part for value in operands for part in (value.data, [names[axis] for axis in value.axes])]
    return Value(torch.einsum(*arguments, [names[axis] for axis in kept]), kept)


def _align(data: Tensor, own: tuple[str, ...], axes: tuple[str, ...]) -> Tensor:
    present = [axis for axis in axes if axis in own]
    ordered = data.permute([own.index(axis) for axis in present])
    sizes = iter(ordered.shape)
    return ordered.reshape([next(sizes) if axis in own else 1 for axis in axes])


def unary(name: str) -> Callable[[Tensor], Tensor]:
    """The torch function that ops/functions/unary.py names as the meaning of `name`."""
    entry = UNARY[name]
    function = reduce(getattr, entry.reference.split(".")[1:], torch)
    return partial(cast(Callable[[Tensor], Tensor], function), **dict(entry.keywords))


def largest(values: Mapping[str, Value]) -> float:
    """The largest magnitude of any value; inf where one is not finite."""
    top = 0.0
    for value in values.values():
        here = float(value.data.abs().max())
        if not here < inf:
            return inf
        top = max(top, here)
    return top
