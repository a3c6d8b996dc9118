"""Maxima by the order of real numbers. Each value is an element of the field and also a real number, computed from
random real inputs. Of two values the maximum is the one with the larger real number.

Whatever holds for real maxima holds here, in tiles of any size: max(a + c, b + c) is max(a, b) + c. The random orders
of order.py do not know that.

The test shows nothing unless the order can go both ways: max(x, 1000) differs from x for few inputs. So each maximum
must have been either of its values in several seeds, and the largest of a row must have been in every place. For that,
inputs are drawn at many scales, among them those of the graphs' constants, and each tensor at a scale of its own.

That max(v, 0) is never 0 counts as shown if v cannot be negative (signs.py), for example as a sum of squares. A seed
says nothing if two numbers in it differ by so little that they count as equal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.by_sign import BY_SIGN
from mugraph.verification.arithmetic import FloatArithmetic, Index, Rearrange
from mugraph.verification.field import FieldArithmetic, FieldValue
from mugraph.verification.inputs import homes
from mugraph.verification.shown import Shown
from mugraph.verification.signs import SignArithmetic, Signed

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

    value: Signed
    real: Reals


class OrderedArithmetic:
    """One run of both graphs. Marks the field's seeds as invalid in which it cannot tell which of two values is
    larger."""

    def __init__(self, field: FieldArithmetic, shown: Shown) -> None:
        self._field, self._floats, self._shown = field, FloatArithmetic(), shown
        self._signs = SignArithmetic(field, np.zeros(field.repetitions, np.bool_))

    def constant(self, value: float, rank: int) -> Ordered:
        element = self._signs.constant(value, rank)
        return Ordered(element, np.full(element.value.p.shape, value, np.float64))

    def indicator(self, where: NDArray[np.bool_]) -> Ordered:
        element = self._signs.indicator(where)
        return Ordered(element, element.value.p.astype(np.float64))

    def whole(self, numbers: NDArray[np.int64]) -> Ordered:
        element = self._signs.whole(numbers)
        return Ordered(element, np.broadcast_to(numbers, element.value.p.shape).astype(np.float64))

    def add(self, a: Ordered, b: Ordered) -> Ordered:
        return self._kept(Ordered(self._signs.add(a.value, b.value), a.real + b.real))

    def mul(self, a: Ordered, b: Ordered) -> Ordered:
        return self._kept(Ordered(self._signs.mul(a.value, b.value), a.real * b.real))

    def div(self, a: Ordered, b: Ordered) -> Ordered:
        return self._kept(Ordered(self._signs.div(a.value, b.value), a.real / b.real))

    def sqrt(self, a: Ordered) -> Ordered:
        return Ordered(self._signs.sqrt(a.value), np.sqrt(abs(a.real)))  # as the field's roots are

    def exp(self, a: Ordered) -> Ordered:
        return self._kept(Ordered(self._signs.exp(a.value), np.exp(a.real)))

    def unary(self, fn: str, a: Ordered) -> Ordered:
        if fn in BY_SIGN:
            zero = self.constant(0.0, a.real.ndim - 1)
            return self.maximum(a, zero if fn == "relu" else self.mul(self.constant(-1.0, a.real.ndim - 1), a))
        return Ordered(self._signs.unary(fn, a.value), self._floats.unary(fn, a.real))

    def opaque(self, kind: Kind, *operands: Ordered) -> Ordered:
        value = self._signs.opaque(kind, *(a.value for a in operands))
        return Ordered(value, self._floats.opaque(kind, *(a.real for a in operands)))

    def maximum(self, a: Ordered, b: Ordered) -> Ordered:
        first = a.real >= b.real
        differ = a.value.value.p != b.value.value.p
        self._tell_apart(differ, abs(a.real - b.real), np.maximum(abs(a.real), abs(b.real)))
        self._shown.maximum(a.value.value.p, b.value.value.p, first)
        not_negative = a.value.not_negative or b.value.not_negative
        chosen = self._field.chosen(first, a.value.value, b.value.value)
        return Ordered(Signed(chosen, not_negative), np.where(first, a.real, b.real))

    def amax(self, a: Ordered, over: tuple[int, ...]) -> Ordered:
        whole = a
        for position in over:
            index = np.expand_dims(a.real.argmax(position), position)
            self._shown.largest(index, a.real.shape[position])
            a = self.rearrange(a, lambda array, at=index, position=position: np.take_along_axis(array, at, position))
        differ = whole.value.value.p != a.value.value.p
        self._tell_apart(differ, abs(whole.real - a.real), abs(a.real) + abs(whole.real))
        return a

    def sum(self, a: Ordered, over: tuple[int, ...]) -> Ordered:
        return self._kept(Ordered(self._signs.sum(a.value, over), self._floats.sum(a.real, over)))

    def dot(self, a: Ordered, b: Ordered, over: tuple[int, ...]) -> Ordered:
        return self._kept(Ordered(self._signs.dot(a.value, b.value, over), self._floats.dot(a.real, b.real, over)))

    def running(self, a: Ordered, over: tuple[int, ...], backwards: bool) -> Ordered:
        value = self._signs.running(a.value, over, backwards)
        return self._kept(Ordered(value, self._floats.running(a.real, over, backwards)))

    def shape(self, a: Ordered) -> tuple[int, ...]:
        return a.real.shape

    def rearrange(self, a: Ordered, how: Rearrange) -> Ordered:
        return Ordered(self._signs.rearrange(a.value, how), how(a.real))

    def assemble(self, shape: tuple[int, ...], pieces: Sequence[tuple[Index, Ordered]]) -> Ordered:
        value = self._signs.assemble(shape, [(index, piece.value) for index, piece in pieces])
        return Ordered(value, self._floats.assemble(shape, [(index, piece.real) for index, piece in pieces]))

    def _kept(self, a: Ordered) -> Ordered:
        if a.value.not_negative:
            self._shown.not_negative(a.value.value.p)
        return a

    def _tell_apart(self, differ: NDArray[np.bool_], distance: Reals, size: Reals) -> None:
        unclear = differ & ~(distance > _TIE * size)  # NaN is not clear either
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
    return {name: Ordered(Signed(inputs[name], False), owners[owner]) for name, owner in homes(program).items()}
