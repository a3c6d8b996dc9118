"""Maxima by the order of real numbers: each value is an element of the field and a real number, computed from random
inputs of either kind, and of two values the one with the larger number is the maximum.

All that holds for real maxima holds for these, in tiles of any size: max(a + c, b + c) is max(a, b) + c, and
max(|x|, 0) is |x|. The random orders of order.py know less, but need no real numbers at which an order comes out:
max(x, 1000) differs from x for most of them. So inputs are drawn here at many scales, those of the graphs' constants
among them, each tensor at one of its own. A seed in which two numbers that differ are as good as equal says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ops.by_sign import BY_SIGN
from mugraph.verify.arithmetic import FloatArithmetic, Index, Rearrange
from mugraph.verify.field import FieldArithmetic, FieldValue
from mugraph.verify.inputs import homes

Reals = NDArray[np.float64]

REPETITIONS_BY_REALS = 32
_SCALES = (0.01, 1.0, 100.0)
_AROUND = (0.1, 1.0, 10.0)
"""Of a constant."""
_OFFSETS = (0.0, 0.0, 1.0, -1.0)
"""Of the scale."""
_LARGEST = 1e60
_TIE = 1e-9
"""Of the larger of two numbers: nearer ones are not told apart."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Arrays of one shape."""

    value: FieldValue
    real: Reals


class OrderedArithmetic:
    """Spoils the field's seeds in which it cannot tell which of two is larger."""

    def __init__(self, field: FieldArithmetic) -> None:
        self._field, self._floats = field, FloatArithmetic()

    def constant(self, value: float, rank: int) -> Ordered:
        element = self._field.constant(value, rank)
        return Ordered(element, np.full(element.p.shape, value, np.float64))

    def indicator(self, where: NDArray[np.bool_]) -> Ordered:
        element = self._field.indicator(where)
        return Ordered(element, element.p.astype(np.float64))

    def add(self, a: Ordered, b: Ordered) -> Ordered:
        return Ordered(self._field.add(a.value, b.value), a.real + b.real)

    def mul(self, a: Ordered, b: Ordered) -> Ordered:
        return Ordered(self._field.mul(a.value, b.value), a.real * b.real)

    def div(self, a: Ordered, b: Ordered) -> Ordered:
        return Ordered(self._field.div(a.value, b.value), a.real / b.real)

    def sqrt(self, a: Ordered) -> Ordered:
        return Ordered(self._field.sqrt(a.value), np.sqrt(abs(a.real)))  # as the field's roots are

    def exp(self, a: Ordered) -> Ordered:
        return Ordered(self._field.exp(a.value), np.exp(a.real))

    def unary(self, fn: str, a: Ordered) -> Ordered:
        if fn in BY_SIGN:
            zero = self.constant(0.0, a.real.ndim - 1)
            return self.maximum(a, zero if fn == "relu" else self.mul(self.constant(-1.0, a.real.ndim - 1), a))
        return Ordered(self._field.unary(fn, a.value), self._floats.unary(fn, a.real))

    def maximum(self, a: Ordered, b: Ordered) -> Ordered:
        first = a.real >= b.real
        self._tell_apart(a.value.p != b.value.p, abs(a.real - b.real), np.maximum(abs(a.real), abs(b.real)))
        q = None if a.value.q is None or b.value.q is None else np.where(first, a.value.q, b.value.q)
        return Ordered(FieldValue(np.where(first, a.value.p, b.value.p), q), np.where(first, a.real, b.real))

    def amax(self, a: Ordered, over: tuple[int, ...]) -> Ordered:
        whole = a
        for position in over:
            index = np.expand_dims(a.real.argmax(position), position)
            a = self.rearrange(a, lambda array, at=index, position=position: np.take_along_axis(array, at, position))
        self._tell_apart(whole.value.p != a.value.p, abs(whole.real - a.real), abs(a.real) + abs(whole.real))
        return a

    def sum(self, a: Ordered, over: tuple[int, ...]) -> Ordered:
        return Ordered(self._field.sum(a.value, over), self._floats.sum(a.real, over))

    def dot(self, a: Ordered, b: Ordered, over: tuple[int, ...]) -> Ordered:
        return Ordered(self._field.dot(a.value, b.value, over), self._floats.dot(a.real, b.real, over))

    def shape(self, a: Ordered) -> tuple[int, ...]:
        return a.real.shape

    def rearrange(self, a: Ordered, how: Rearrange) -> Ordered:
        return Ordered(self._field.rearrange(a.value, how), how(a.real))

    def assemble(self, shape: tuple[int, ...], pieces: Sequence[tuple[Index, Ordered]]) -> Ordered:
        value = self._field.assemble(shape, [(index, piece.value) for index, piece in pieces])
        return Ordered(value, self._floats.assemble(shape, [(index, piece.real) for index, piece in pieces]))

    def _tell_apart(self, differ: NDArray[np.bool_], distance: Reals, size: Reals) -> None:
        unclear = differ & ~(distance > _TIE * size)  # what is no number is not clear either
        self._field.valid &= ~unclear.reshape(unclear.shape[0], -1).any(1)


def with_reals(
    program: TensorProgram,
    inputs: Mapping[str, FieldValue],
    graphs: Collection[Sequence[Op]],
    rng: np.random.Generator,
) -> dict[str, Ordered]:
    """Random real numbers for inputs of the field, at the scales of the graphs' constants and others."""
    constants = {abs(op.value) for ops in graphs for op in ops if op.kind is Kind.CONST}
    scales = sorted({*_SCALES, *(c * k for c in constants for k in _AROUND if 1 / _LARGEST < c < _LARGEST)})
    owners: dict[str, Reals] = {}
    for name, owner in homes(program).items():
        if owner not in owners:
            shape = inputs[name].p.shape
            scale = rng.choice(scales, shape[0]).reshape((-1,) + (1,) * (len(shape) - 1))
            offset = rng.choice(_OFFSETS, shape[0]).reshape(scale.shape)
            owners[owner] = scale * (offset + rng.standard_normal(shape))
    return {name: Ordered(inputs[name], owners[owner]) for name, owner in homes(program).items()}
