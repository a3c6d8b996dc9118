"""A tensor program in torch, in float64: exact, or with what a way of rounding (roundings.py) loses.

Runs on the device its inputs are on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from math import inf
from typing import Protocol, cast

import torch
from torch import Tensor

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.ir.tensors import Tensor as Layout
from mugraph.ops.functions.unary import UNARY
from mugraph.verification.evaluate import ancestors
from mugraph.verification.shifted_exponents import shifted, shifted_along
from mugraph.verification.window_places import read_places


@dataclass(frozen=True)
class Value:
    """data: float64, one dimension per axis, in the order of `axes`. mask: it is one, of ones and zeros."""

    data: Tensor
    axes: tuple[str, ...]
    mask: bool = False


class Rounding(Protocol):
    """What is lost on the way: operands of an operator before it is computed, its result after."""

    def operand(self, op: Op, position: int, data: Tensor) -> Tensor: ...
    def result(self, op: Op, operands: Sequence[Value], data: Tensor) -> Tensor: ...
    def joined(self, op: Op) -> Joined:
        """Of a reduction that is computed in parts: what it takes to round its result."""
        ...


class Joined(Protocol):
    def add(self, operands: Sequence[Value], share: float) -> None:
        """share: of all that is reduced"""
        ...

    def result(self, data: Tensor) -> Tensor:
        """data: joined from all parts"""
        ...


@dataclass(frozen=True)
class OfResult:
    """Where the rounding depends on the result alone."""

    rounding: Rounding
    op: Op

    def add(self, operands: Sequence[Value], share: float) -> None: ...

    def result(self, data: Tensor) -> Tensor:
        return self.rounding.result(self.op, (), data)


class Exact:
    """Nothing is lost."""

    def operand(self, op: Op, position: int, data: Tensor) -> Tensor:
        return data

    def result(self, op: Op, operands: Sequence[Value], data: Tensor) -> Tensor:
        return data

    def joined(self, op: Op) -> Joined:
        return OfResult(self, op)


def evaluate(
    program: TensorProgram,
    inputs: Mapping[str, Tensor],
    rounding: Rounding | None = None,
    wanted: Collection[str] | None = None,
    given: Mapping[str, Value] | None = None,
    *,
    shifts: bool = False,
) -> dict[str, Value]:
    """Value name -> its value.

    inputs:   tensor name -> tensor of the storage type, in PyTorch's shape
    rounding: none: exact
    wanted:   values to compute; others are let go as soon as nothing needs them. All if not given.
    given:    values that are known
    shifts:   exponentials that a softmax divides by are kept in range (shifted_exponents.py). Then they are not what
              they are called, and the program must not be a piece of one that is cut along their rows
    """
    rounding = rounding or Exact()
    known = given or {}
    values: dict[str, Value] = dict(known)
    ops = [op for op in program.ops if op.name not in known]
    if wanted is not None:
        needed = ancestors(ops, wanted)
        ops = [op for op in ops if op.name in needed]
    last = {name: op.name for op in ops for name in op.inputs}
    rows = shifted_along(program) if shifts else {}
    for op in ops:
        operands: Mapping[str, Value] = values
        if op.name in rows:
            (name,) = op.inputs
            argument = values[name]
            near = shifted(argument.data, argument.axes, rows[op.name])
            operands = {name: replace(argument, data=near)}
        values[op.name] = value_of(op, program, inputs, operands, rounding)
        if wanted is not None:
            for name in {name for name in op.inputs if last[name] == op.name and name not in wanted}:
                del values[name]
    return values


def value_of(
    op: Op, program: TensorProgram, inputs: Mapping[str, Tensor], values: Mapping[str, Value], rounding: Rounding
) -> Value:
    """Of one operator. values: its operands, at least"""
    device = next(iter(inputs.values())).device
    if op.kind is Kind.LOAD:
        tensor = program.tensor(op.tensor)
        sizes = [program.sizes[axis] for axis in tensor.axes]
        data = _through_windows(inputs[tensor.name], tensor, program.sizes).reshape(sizes).to(torch.float64)
        return Value(data, tensor.axes)
    if op.kind is Kind.CONST:
        return TorchArithmetic(device).constant(op.value)
    if op.kind.of_places:
        return _of_places(op, program.sizes, device)
    operands = [values[name] for name in op.inputs]
    value = computed(op, operands, rounding)
    return Value(rounding.result(op, operands, value.data), value.axes)


def computed(op: Op, operands: Sequence[Value], rounding: Rounding) -> Value:
    """What an operator makes of its operands, before its result is rounded."""
    rounded = [replace(v, data=rounding.operand(op, at, v.data)) for at, v in enumerate(operands)]
    return op.kind.meaning(TorchArithmetic(operands[0].data.device), rounded, op.fn, op.over)


def _through_windows(data: Tensor, tensor: Layout, sizes: Sizes) -> Tensor:
    """The tensor with one place for each position and tap in a windowed dimension, zero where there is none."""
    for window in tensor.windows:
        shape = list(data.shape)
        shape[window.dim] = 1
        padded = torch.cat((data, data.new_zeros(shape)), window.dim)
        places = read_places(window, tensor.dims[window.dim], sizes, data.device)
        data = padded.index_select(window.dim, places % padded.shape[window.dim])
    return data


def _of_places(op: Op, sizes: Mapping[str, int], device: torch.device) -> Value:
    def places(axes: tuple[str, ...]) -> Tensor:
        place = torch.zeros((), dtype=torch.int64, device=device)
        for axis in axes:
            place = place[..., None] * sizes[axis] + torch.arange(sizes[axis], device=device)
        return place

    rows, columns = places(op.rows) + int(op.value), places(op.columns)
    if op.kind is not Kind.MASK:
        return Value(rows.to(torch.float64), op.rows)
    data = columns <= rows.reshape(rows.shape + (1,) * columns.dim())
    return Value(data.to(torch.float64), (*op.rows, *op.columns), mask=True)


def outputs(program: TensorProgram, values: Mapping[str, Value]) -> dict[str, Tensor]:
    """Output tensor name -> its numbers, float64, in PyTorch's shape."""
    results: dict[str, Tensor] = {}
    for name, tensor in program.outputs.items():
        value = values[name]
        order = [value.axes.index(axis) for axis in tensor.axes]
        results[tensor.name] = value.data.permute(order).reshape(tensor.shape(program.sizes))
    return results


class TorchArithmetic:
    """The operators in torch, by the names of axes."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def constant(self, value: float) -> Value:
        return Value(torch.tensor(value, dtype=torch.float64, device=self._device), ())

    def add(self, a: Value, b: Value) -> Value:
        return _each(torch.add, a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """Exactly zero where a factor that is a mask is zero, even if the other factor, an exponential, is infinite
        there: the user's program has added minus infinity to the exponent."""
        product = _each(torch.mul, a, b)
        data = product.data
        for mask in (value for value in (a, b) if value.mask):
            data = data.masked_fill(_align(mask.data, mask.axes, product.axes) == 0, 0.0)
        return Value(data, product.axes)

    def div(self, a: Value, b: Value) -> Value:
        return _each(torch.div, a, b)

    def sqrt(self, a: Value) -> Value:
        return _each(torch.sqrt, a)

    def exp(self, a: Value) -> Value:
        return _each(torch.exp, a)

    def unary(self, fn: str, a: Value) -> Value:
        return _each(unary(fn), a)

    def opaque(self, kind: Kind, *operands: Value) -> Value:
        return _each(_opaque(kind), *operands)

    def maximum(self, a: Value, b: Value) -> Value:
        return _each(torch.maximum, a, b)

    def amax(self, a: Value, over: Collection[str]) -> Value:
        data = a.data.amax([a.axes.index(axis) for axis in over])
        return Value(data, tuple(axis for axis in a.axes if axis not in over))

    def sum(self, a: Value, over: Collection[str]) -> Value:
        return summed(over, a)

    def dot(self, a: Value, b: Value, over: Collection[str]) -> Value:
        return summed(over, a, b)

    def running(self, a: Value, over: Collection[str], backwards: bool) -> Value:
        (axis,) = over
        position = a.axes.index(axis)
        if not backwards:
            return Value(a.data.cumsum(position), a.axes)
        return Value(a.data.flip(position).cumsum(position).flip(position), a.axes)


def _each(function: Callable[..., Tensor], *operands: Value) -> Value:
    """A function of the elements of each place."""
    axes = tuple(dict.fromkeys(axis for operand in operands for axis in operand.axes))
    return Value(function(*(_align(operand.data, operand.axes, axes) for operand in operands)), axes)


def summed(over: Collection[str], *operands: Value) -> Value:
    """The product of the operands, summed."""
    names = {axis: i for i, axis in enumerate(dict.fromkeys(axis for operand in operands for axis in operand.axes))}
    kept = tuple(axis for axis in names if axis not in over)
    arguments = [part for value in operands for part in (value.data, [names[axis] for axis in value.axes])]
    return Value(torch.einsum(*arguments, [names[axis] for axis in kept]), kept)


def _align(data: Tensor, own: tuple[str, ...], axes: tuple[str, ...]) -> Tensor:
    present = [axis for axis in axes if axis in own]
    ordered = data.permute([own.index(axis) for axis in present])
    sizes = iter(ordered.shape)
    return ordered.reshape([next(sizes) if axis in own else 1 for axis in axes])


@cache
def _opaque(kind: Kind) -> Callable[..., Tensor]:
    assert kind.opaque is not None
    if not kind.opaque.reference:
        function: Callable[..., Tensor] = getattr(torch, kind.opaque.names[0])
        return lambda *operands: function(*operands).to(torch.float64)
    names = [f"operand_{number}" for number in range(kind.arity)]
    text = kind.opaque.reference.format(*names)
    return eval(f"lambda {', '.join(names)}: {text}", {"torch": torch})  # the text is a kind's own


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
