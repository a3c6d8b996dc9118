"""A tensor program in torch: exact (float64), as eager PyTorch rounds it, and how large its errors may be expected.

Runs on the device its inputs are on. All values are float64 tensors; precision is lost by rounding after an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from math import inf
from typing import cast

import torch
from torch import Tensor

from mugraph.ir.masks import diagonal
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import DType, Sizes
from mugraph.ir.tensors import Tensor as Layout
from mugraph.ops.unary import UNARY

TORCH_TYPES: Mapping[DType, torch.dtype] = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
EPSILON: Mapping[DType, float] = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}
"""Largest relative error of one rounding (half a unit in the last place)."""


@dataclass(frozen=True)
class Value:
    """data: float64, one dimension per axis, in the order of `axes`.
    magnitude: of the same shape: how large an error of relative size 1 in every summand, added up in quadrature, would
    make this value wrong. Near |data| for a random sum, far above it where the summands cancel."""

    data: Tensor
    axes: tuple[str, ...]
    magnitude: Tensor


def evaluate(program: TensorProgram, inputs: Mapping[str, Tensor], rounded: bool) -> dict[str, Value]:
    """Value name -> its value.

    inputs:  tensor name -> tensor of the storage type, in PyTorch's shape
    rounded: round every value as the eager program does: to the type it would have (the storage type, or float32 where
             Op.f32 says so); sums are accumulated in full and rounded once. What lies between an exp and the division
             that normalises it is rounded to float32's 24 bits without its range, as inside a softmax.
    """
    values: dict[str, Value] = {}
    masks = {op.name for op in program.ops if op.kind is Kind.MASK}
    precision = _precisions(program)
    for op in program.ops:
        operands = [values[name] for name in op.inputs]
        if op.kind is Kind.LOAD:
            tensor = program.tensor(op.tensor)
            sizes = [program.sizes[axis] for axis in tensor.axes]
            data = _through_windows(inputs[tensor.name], tensor, program.sizes).reshape(sizes).to(torch.float64)
            values[op.name] = Value(data, tensor.axes, data.abs())
        elif op.kind is Kind.CONST:
            device = next(iter(inputs.values())).device
            data = torch.tensor(op.value, dtype=torch.float64, device=device)
            values[op.name] = Value(data, (), data.abs())
        elif op.kind is Kind.MASK:
            values[op.name] = _mask(op, program.sizes, next(iter(inputs.values())).device)
        else:
            value = _compute(op, operands)
            if op.kind is Kind.MUL:
                value = _cleared(value, [o for o, name in zip(operands, op.inputs, strict=True) if name in masks])
            if rounded:
                value = Value(_round(value.data, precision[op.name]), value.axes, value.magnitude)
            values[op.name] = value
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
    return Value(data.to(torch.float64), (*op.rows, *op.columns), data.to(torch.float64))


def _cleared(product: Value, masks: list[Value]) -> Value:
    """The product, exactly zero where a factor that is a mask is: also where the other factor, an exponential, is
    infinite, which the program adds minus infinity to before."""
    data, magnitude = product.data, product.magnitude
    for mask in masks:
        hidden = _align(mask.data, mask.axes, product.axes) == 0
        data, magnitude = data.masked_fill(hidden, 0.0), magnitude.masked_fill(hidden, 0.0)
    return Value(data, product.axes, magnitude)


def outputs(program: TensorProgram, values: Mapping[str, Value]) -> dict[str, tuple[Tensor, Tensor]]:
    """Output tensor name -> (data, magnitude), float64, in PyTorch's shape."""
    results: dict[str, tuple[Tensor, Tensor]] = {}
    for name, tensor in program.outputs.items():
        value = values[name]
        order = [value.axes.index(axis) for axis in tensor.axes]
        shape = tensor.shape(program.sizes)
        results[tensor.name] = (value.data.permute(order).reshape(shape), value.magnitude.permute(order).reshape(shape))
    return results


def _compute(op: Op, operands: list[Value]) -> Value:
    if op.kind in (Kind.SUM, Kind.DOT):
        return _reduce(op, operands)
    if op.kind is Kind.AMAX:
        (value,) = operands
        over = [value.axes.index(axis) for axis in op.over]
        kept = tuple(axis for axis in value.axes if axis not in op.over)
        return Value(value.data.amax(over), kept, value.magnitude.amax(over))
    axes = tuple(dict.fromkeys(axis for operand in operands for axis in operand.axes))
    data = [_align(operand.data, operand.axes, axes) for operand in operands]
    size = [_align(operand.magnitude, operand.axes, axes) for operand in operands]
    match op.kind:
        case Kind.ADD:
            return Value(data[0] + data[1], axes, torch.hypot(size[0], size[1]))
        case Kind.MUL:
            return Value(data[0] * data[1], axes, torch.maximum(size[0] * data[1].abs(), data[0].abs() * size[1]))
        case Kind.DIV:
            result = data[0] / data[1]
            own = torch.maximum(size[0] / data[1].abs(), result.abs() * size[1] / data[1].abs())
            return Value(result, axes, own)
        case Kind.SQRT:
            result = torch.sqrt(data[0])
            return Value(result, axes, torch.maximum(result, result * (size[0] / (2 * data[0])).nan_to_num(0.0)))
        case Kind.MAX:
            return Value(torch.maximum(data[0], data[1]), axes, torch.maximum(size[0], size[1]))
        case Kind.EXP:
            result = torch.exp(data[0])
            return Value(result, axes, result * (1 + size[0]))
        case Kind.UNARY:
            result = unary(op.fn)(data[0])
            return Value(result, axes, torch.maximum(result.abs(), size[0]))
        case _:
            raise ValueError(f"{op.kind} is no operator of a tensor program")


def _reduce(op: Op, operands: list[Value]) -> Value:
    names = {axis: i for i, axis in enumerate(dict.fromkeys(axis for operand in operands for axis in operand.axes))}
    kept = tuple(axis for axis in names if axis not in op.over)
    rest = [names[axis] for axis in kept]

    def contract(*tensors: Tensor) -> Tensor:
        arguments = [part for t, v in zip(tensors, operands, strict=True) for part in (t, [names[a] for a in v.axes])]
        return torch.einsum(*arguments, rest)

    data = contract(*(operand.data for operand in operands))
    if len(operands) == 1:
        return Value(data, kept, contract(operands[0].magnitude.square()).sqrt())
    a, b = operands
    left = contract(a.magnitude.square(), b.data.square())
    right = contract(a.data.square(), b.magnitude.square())
    return Value(data, kept, torch.maximum(left, right).sqrt())


def _align(data: Tensor, own: tuple[str, ...], axes: tuple[str, ...]) -> Tensor:
    present = [axis for axis in axes if axis in own]
    ordered = data.permute([own.index(axis) for axis in present])
    sizes = iter(ordered.shape)
    return ordered.reshape([next(sizes) if axis in own else 1 for axis in axes])


def unary(name: str) -> Callable[[Tensor], Tensor]:
    """The torch function that ops/unary.py names as the meaning of `name`."""
    entry = UNARY[name]
    function = reduce(getattr, entry.reference.split(".")[1:], torch)
    return partial(cast(Callable[[Tensor], Tensor], function), **dict(entry.keywords))


def _precisions(program: TensorProgram) -> dict[str, DType | None]:
    """Value -> the type eager PyTorch keeps it in; None inside a softmax.

    A value's natural type is the promoted type of the tensors it comes from; Op.f32 lifts it to float32 for itself
    only, because the user's program converts back where the mark ends.
    """
    natural: dict[str, DType | None] = {}
    inside: dict[str, bool] = {}
    result: dict[str, DType | None] = {}
    for op in program.ops:
        if op.kind is Kind.LOAD:
            natural[op.name] = program.tensor(op.tensor).dtype
        else:
            natural[op.name] = reduce(_promoted, (natural[name] for name in op.inputs), None)
        parts = [inside[name] for name in op.inputs]
        normalised = op.kind is Kind.DIV and all(parts)
        inside[op.name] = op.kind is Kind.EXP or (any(parts) and not normalised)
        result[op.name] = None if inside[op.name] else "f32" if op.f32 else natural[op.name] or "f32"
    return result


def _promoted(a: DType | None, b: DType | None) -> DType | None:
    """torch's promotion; None is a number without a type."""
    if a is None or b is None:
        return b if a is None else a
    return a if a == b else "f32"


def _round(data: Tensor, kind: DType | None) -> Tensor:
    if kind is None:
        mantissa, exponent = torch.frexp(data)
        return torch.ldexp(torch.round(mantissa * 2.0**24) / 2.0**24, exponent)
    return data.to(TORCH_TYPES[kind]).to(torch.float64)


def largest(values: Mapping[str, Value]) -> float:
    """The largest magnitude of any value; inf where one is not finite."""
    top = 0.0
    for value in values.values():
        here = float(value.data.abs().max())
        if not here < inf:
            return inf
        top = max(top, here)
    return top
