"""Whether the roots that a graph takes are of numbers that are never negative, if those of the program's roots are not.

Over the fields every element has a root, as |x| has over the reals (inputs.py). A value is known not to be negative,
wherever the program has a number, in one of three cases:

- it is a sum, product, quotient or maximum of such values, an exponential, a square, or a function that is never
  negative;
- it is a square in the field in every test, at inputs for which the arguments of the program's own roots are squares.
  A square for all such inputs is a product of some of these arguments, of positive numbers and of squares, so it is
  positive where they are. The chance that another value is a square in n tests is 2^-n;
- no such inputs are found, and its elements are those of an argument of the program's roots, times a positive number.

Of any other value it is not known that it has a root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind
from mugraph.verification import modular
from mugraph.verification.arithmetic import Index, Rearrange
from mugraph.verification.field import FieldArithmetic, FieldValue
from mugraph.verification.modular import Residues
from mugraph.verification.primes import P

_NEVER_NEGATIVE = frozenset({"relu", "abs", "sigmoid"})
_ENOUGH = 30  # tests of whether a value is a square
_FEW = 64  # that are looked at first


@dataclass(frozen=True, slots=True)
class Signed:
    """not_negative: because of what it is made of."""

    value: FieldValue
    not_negative: bool


class SignArithmetic:
    """Values of the field, and whether they can be negative. unknown: a root was taken of one that may be.

    counted:   the seeds in which the program's roots are roots
    arguments: of the program's roots
    """

    def __init__(self, field: FieldArithmetic, counted: NDArray[np.bool_], arguments: Sequence[Residues] = ()) -> None:
        self._field, self._counted = field, counted
        self._arguments = [argument.reshape(field.repetitions, -1) for argument in arguments]
        self.unknown = False

    def constant(self, value: float, rank: int) -> Signed:
        return Signed(self._field.constant(value, rank), value >= 0)

    def indicator(self, where: NDArray[np.bool_]) -> Signed:
        return Signed(self._field.indicator(where), True)

    def whole(self, numbers: NDArray[np.int64]) -> Signed:
        return Signed(self._field.whole(numbers), bool((numbers >= 0).all()))

    def add(self, a: Signed, b: Signed) -> Signed:
        return Signed(self._field.add(a.value, b.value), self._neither(a, b))

    def mul(self, a: Signed, b: Signed) -> Signed:
        is_square = a.value.p.shape == b.value.p.shape and bool((a.value.p == b.value.p).all())
        return Signed(self._field.mul(a.value, b.value), is_square or self._neither(a, b))

    def div(self, a: Signed, b: Signed) -> Signed:
        return Signed(self._field.div(a.value, b.value), self._neither(a, b))

    def sqrt(self, a: Signed) -> Signed:
        if not self._known(a):
            self.unknown = True
        return Signed(self._field.sqrt(a.value), True)

    def exp(self, a: Signed) -> Signed:
        return Signed(self._field.exp(a.value), True)

    def unary(self, fn: str, a: Signed) -> Signed:
        return Signed(self._field.unary(fn, a.value), fn in _NEVER_NEGATIVE)

    def opaque(self, kind: Kind, *operands: Signed) -> Signed:
        return Signed(self._field.opaque(kind, *(a.value for a in operands)), False)

    def maximum(self, a: Signed, b: Signed) -> Signed:
        return Signed(self._field.maximum(a.value, b.value), a.not_negative or b.not_negative)

    def amax(self, a: Signed, over: tuple[int, ...]) -> Signed:
        return Signed(self._field.amax(a.value, over), self._known(a))

    def sum(self, a: Signed, over: tuple[int, ...]) -> Signed:
        return Signed(self._field.sum(a.value, over), self._known(a))

    def dot(self, a: Signed, b: Signed, over: tuple[int, ...]) -> Signed:
        is_square = a.value.p.shape == b.value.p.shape and bool((a.value.p == b.value.p).all())
        return Signed(self._field.dot(a.value, b.value, over), is_square or self._neither(a, b))

    def running(self, a: Signed, over: tuple[int, ...], backwards: bool) -> Signed:
        return Signed(self._field.running(a.value, over, backwards), self._known(a))

    def shape(self, a: Signed) -> tuple[int, ...]:
        return self._field.shape(a.value)

    def rearrange(self, a: Signed, how: Rearrange) -> Signed:
        return Signed(self._field.rearrange(a.value, how), a.not_negative)

    def assemble(self, shape: tuple[int, ...], pieces: Sequence[tuple[Index, Signed]]) -> Signed:
        whole = self._field.assemble(shape, [(index, piece.value) for index, piece in pieces])
        return Signed(whole, all(piece.not_negative for _, piece in pieces))

    def _neither(self, a: Signed, b: Signed) -> bool:
        return self._known(a) and self._known(b)

    def _known(self, a: Signed) -> bool:
        if a.not_negative:
            return True
        tests = a.value.p[self._counted]
        if tests.size >= _ENOUGH and _are_squares(tests):
            return True
        elements = a.value.p.reshape(self._field.repetitions, -1)
        return any(_is_multiple(elements, argument) for argument in self._arguments)


def _are_squares(tests: Residues) -> bool:
    """All of them. As a rule half are not, and few show it."""
    flat = tests.reshape(-1)
    return bool(modular.is_square(flat[:_FEW], P).all()) and bool(modular.is_square(flat[_FEW:], P).all())


def _is_multiple(elements: Residues, argument: Residues) -> bool:
    """Is every element one of the argument's in its seed times a positive number, the same in all seeds?"""
    ratios = elements[0, 0] * modular.inverse(argument[0], P) % P
    for ratio in np.unique(ratios[modular.is_square(ratios, P) & (ratios != 0)]):
        if all(bool(np.isin(mine, ratio * own % P).all()) for mine, own in zip(elements, argument, strict=True)):
            return True
    return False
