"""The meaning of operators over named axes, and of whole tensor programs, for any arithmetic."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window
from mugraph.kinds import accumulators
from mugraph.ops.functions.unary import UNARY
from mugraph.verification.arithmetic import Arithmetic, OfRank, Rearrange

V = TypeVar("V")


class Malformed(Exception):
    """The graph has no meaning; the message is one sentence saying why."""


@dataclass(frozen=True)
class Frame:
    """The fixed order of axes that all values of one evaluation share (position 0 is the repetition)."""

    order: tuple[str, ...]
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Frame:
        return cls(tuple(sorted(sizes)), sizes)

    @property
    def rank(self) -> int:
        return len(self.order)

    def positions(self, axes: Collection[str]) -> tuple[int, ...]:
        return tuple(1 + self.order.index(axis) for axis in sorted(axes))

    def from_tensor(self, array: NDArray[Any], tensor: Tensor) -> NDArray[Any]:
        """[repetitions, *tensor.shape] -> a value's layout."""
        if array.shape[1:] != tensor.shape(self.sizes):
            raise Malformed(f"{tensor.name} has shape {array.shape[1:]}, the graph says {tensor.shape(self.sizes)}")
        for window in tensor.windows:  # what lies outside reads some element here, and counts for nothing (`load`)
            places = np.maximum(window.places(tensor.dims[window.dim], self.sizes), 0)
            array = np.take(array, places, axis=1 + window.dim)
        axes = tensor.axes
        split = array.reshape(array.shape[0], *(self.sizes[axis] for axis in axes))
        ordered = split.transpose(0, *(1 + axes.index(axis) for axis in self.order if axis in axes))
        full = (self.sizes[axis] if axis in axes else 1 for axis in self.order)
        return ordered.reshape(array.shape[0], *full)

    def inside(self, tensor: Tensor, window: Window) -> NDArray[np.bool_]:
        """Where the window reads an element of its dimension, in this layout with one repetition."""
        axes = tensor.dims[window.dim]
        where = np.array(window.places(axes, self.sizes)) >= 0
        present = [axis for axis in self.order if axis in axes]
        ordered = where.reshape([self.sizes[axis] for axis in axes]).transpose([axes.index(axis) for axis in present])
        return ordered.reshape(1, *(self.sizes[axis] if axis in axes else 1 for axis in self.order))

    def to_tensor(self, array: NDArray[Any], tensor: Tensor) -> NDArray[Any]:
        """A value's layout, with all of the tensor's axes and no others -> [repetitions, *tensor.shape]."""
        axes = tensor.axes
        present = [axis for axis in self.order if axis in axes]
        dense = array.reshape(array.shape[0], *(self.sizes[axis] for axis in present))
        ordered = dense.transpose(0, *(1 + present.index(axis) for axis in axes))
        return ordered.reshape(array.shape[0], *tensor.shape(self.sizes))


def result_axes(op: Op, operands: Sequence[frozenset[str]], tensors: Mapping[str, Tensor]) -> frozenset[str]:
    """The axes of the operator's value, checked against `Op.axes`. Raises Malformed if they differ, or if the
    operator has no meaning over the fields."""
    _check_meaning(op)
    if len(operands) != op.kind.arity:
        raise Malformed(f"{op.name}: {op.kind} takes {op.kind.arity} operands, not {len(operands)}")
    if op.kind is Kind.LOAD:
        if op.tensor not in tensors:
            raise Malformed(f"{op.name} loads {op.tensor}, which is no tensor of the graph")
        axes = frozenset(tensors[op.tensor].axes)
    elif op.kind.of_places:
        axes = frozenset((*op.rows, *op.columns))
        if len(axes) < len(op.rows) + len(op.columns) or not float(op.value).is_integer():
            raise Malformed(f"{op.name} is no {op.kind} along rows {op.rows} and columns {op.columns}")
        if op.columns and "columns" not in op.kind.fields:
            raise Malformed(f"{op.name} has columns {op.columns}, and a {op.kind} has none")
    else:
        axes: frozenset[str] = frozenset[str]().union(*operands)
    if op.kind.reduces:
        if not op.over or not axes.issuperset(op.over):
            raise Malformed(f"{op.name} reduces {', '.join(op.over) or 'nothing'}, its operands have {sorted(axes)}")
        axes = axes.difference(op.over)
    if op.kind.scans and (len(op.over) != 1 or not axes.issuperset(op.over)):
        raise Malformed(f"{op.name} runs along {', '.join(op.over) or 'nothing'}, its operand has {sorted(axes)}")
    if op.kind is not Kind.STORE and axes != frozenset(op.axes):
        raise Malformed(f"{op.name} has axes {sorted(axes)}, the graph says {sorted(op.axes)}")
    return axes


def _check_meaning(op: Op) -> None:
    if "fn" in op.kind.fields and op.fn not in UNARY:
        raise Malformed(f"{op.name} applies {op.fn or 'a function without a name'}, which is not known")
    if op.kind is Kind.ACCUM and op.fn not in accumulators():
        raise Malformed(f"{op.name} accumulates by {op.fn}; an accumulator adds up or keeps the largest")
    if op.kind is Kind.CONST and not isfinite(op.value):
        raise Malformed(f"{op.name} is the constant {op.value}, which is no number")


def load(tensor: Tensor, value: V, frame: Frame, arithmetic: Arithmetic[V]) -> V:
    """[repetitions, *tensor.shape] -> the value in the frame's layout, read through the tensor's windows."""
    found = arithmetic.rearrange(value, lambda array: frame.from_tensor(array, tensor))
    for window in tensor.windows:
        if window.has_zeros:
            found = arithmetic.mul(found, arithmetic.indicator(frame.inside(tensor, window)))
    return found


def apply(op: Op, operands: Sequence[V], frame: Frame, arithmetic: Arithmetic[V]) -> V:
    """The value of a constant, mask, position, element-wise operator, sum, running sum or dot."""
    if op.kind is Kind.CONST:
        return arithmetic.constant(op.value, frame.rank)
    if op.kind.of_places:
        return of_places(op, frame, arithmetic)
    if op.kind.is_elementwise or op.kind.reduces or op.kind.scans:
        return op.kind.meaning(OfRank(arithmetic, frame.rank), operands, op.fn, frame.positions(op.over))
    raise Malformed(f"{op.name}: {op.kind} has no meaning here")


def of_places(op: Op, frame: Frame, arithmetic: Arithmetic[V], part: Rearrange = np.asarray) -> V:
    """A mask or a position in the frame's layout. part: takes a part of the array"""

    def places(axes: tuple[str, ...]) -> NDArray[np.int64]:
        place = np.zeros((1,) * (frame.rank + 1), np.int64)
        for axis in axes:
            shape = [1] * (frame.rank + 1)
            shape[frame.positions((axis,))[0]] = frame.sizes[axis]
            place = place * frame.sizes[axis] + np.arange(frame.sizes[axis]).reshape(shape)
        return place

    rows = places(op.rows) + int(op.value)
    if op.kind is Kind.MASK:
        return arithmetic.indicator(part(places(op.columns) <= rows))
    return arithmetic.whole(part(rows))


def ancestors(ops: Sequence[Op], names: Collection[str]) -> frozenset[str]:
    """The values that these values are computed from, themselves included."""
    needed = set(names)
    for op in reversed(ops):
        if op.name in needed:
            needed.update(op.inputs)
    return frozenset(needed)


def arguments_of(ops: Sequence[Op], primitive: str) -> list[str]:
    """The values of which a root or an exponential is taken. primitive: "sqrt", "exp" (kinds/kind.py)"""
    return sorted({op.inputs[0] for op in ops if primitive in op.kind.primitives})


def evaluate_values(
    program: TensorProgram, inputs: Mapping[str, V], arithmetic: Arithmetic[V], wanted: Collection[str]
) -> dict[str, V]:
    """Every value that `wanted` needs, in the layout of Frame.of(program.sizes).

    inputs: tensor name -> [repetitions, *tensor.shape]
    Raises Malformed.
    """
    frame = Frame.of(program.sizes)
    tensors = {tensor.name: tensor for tensor in program.tensors}
    needed = ancestors(program.ops, wanted)
    values: dict[str, V] = {}
    axes: dict[str, frozenset[str]] = {}
    for op in program.ops:
        if op.name not in needed:
            continue
        if op.name in values:
            raise Malformed(f"two values are called {op.name}")
        for name in op.inputs:
            if name not in values:
                raise Malformed(f"{op.name} uses {name} before it is defined")
        axes[op.name] = result_axes(op, [axes[name] for name in op.inputs], tensors)
        if op.kind is Kind.LOAD:
            tensor = tensors[op.tensor]
            if tensor.name not in inputs:
                raise Malformed(f"no value is given for the input {tensor.name}")
            values[op.name] = load(tensor, inputs[tensor.name], frame, arithmetic)
        else:
            values[op.name] = apply(op, [values[name] for name in op.inputs], frame, arithmetic)
    for name in wanted:
        if name not in values:
            raise Malformed(f"no operator computes {name}")
    return values


def evaluate_program(program: TensorProgram, inputs: Mapping[str, V], arithmetic: Arithmetic[V]) -> dict[str, V]:
    """Output tensor name -> [repetitions, *tensor.shape]. Raises Malformed."""
    frame = Frame.of(program.sizes)
    values = evaluate_values(program, inputs, arithmetic, tuple(program.outputs))
    results: dict[str, V] = {}
    for name, tensor in program.outputs.items():
        if frozenset(program.op(name).axes) != frozenset(tensor.axes):
            raise Malformed(f"{tensor.name} has other axes than {name}, which is written to it")
        results[tensor.name] = arithmetic.rearrange(
            values[name],
            lambda array, tensor=tensor: frame.to_tensor(_filled(array, frame, tensor), tensor),
        )
    return results


def _filled(array: NDArray[Any], frame: Frame, tensor: Tensor) -> NDArray[Any]:
    full = (frame.sizes[axis] if axis in tensor.axes else 1 for axis in frame.order)
    return np.broadcast_to(array, (array.shape[0], *full))
