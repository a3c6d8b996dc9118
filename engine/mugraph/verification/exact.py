"""Values whose elements are exact expressions (expressions.py), as the evaluators of programs and block graphs take
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind
from mugraph.ops.functions.by_erf import ERF, GELU, gelu_by_erf
from mugraph.ops.functions.through_exp import CONSTANTS, form
from mugraph.verification.arithmetic import Index, Rearrange, assemble_arrays, running_totals
from mugraph.verification.constants import read
from mugraph.verification.expressions import Expression, Expressions

Elements = NDArray[Any]  # of Expression


class ExactArithmetic:
    """An Arithmetic (arithmetic.py) of one repetition. Raises Unproved where an expression becomes too long, or is
    divided by 0."""

    def __init__(self, expressions: Expressions) -> None:
        self._on = expressions

    def variables(self, shape: tuple[int, ...]) -> Elements:
        """[1, *shape] input elements."""
        found = np.empty((1, *shape), object)
        for index in np.ndindex(found.shape):
            found[index] = self._on.variable()
        return found

    def constant(self, value: float, rank: int) -> Elements:
        found = np.empty((1,) * (rank + 1), object)
        found[...] = self._on.constant(read(value))
        return found

    def indicator(self, where: NDArray[np.bool_]) -> Elements:
        one, zero = self._on.number(Fraction(1)), self._on.number(Fraction(0))

        def element(is_one: bool) -> Expression:
            return one if is_one else zero

        return _each(element, 1)(where)

    def whole(self, numbers: NDArray[np.int64]) -> Elements:
        def element(number: int) -> Expression:
            return self._on.number(Fraction(int(number)))

        return _each(element, 1)(numbers)

    def add(self, a: Elements, b: Elements) -> Elements:
        return _each(self._on.add, 2)(a, b)

    def mul(self, a: Elements, b: Elements) -> Elements:
        return _each(self._on.mul, 2)(a, b)

    def div(self, a: Elements, b: Elements) -> Elements:
        return self.mul(a, _each(self._on.inverse, 1)(b))

    def sqrt(self, a: Elements) -> Elements:
        return _each(self._on.sqrt, 1)(a)

    def exp(self, a: Elements) -> Elements:
        return _each(self._on.exp, 1)(a)

    def unary(self, fn: str, a: Elements) -> Elements:
        def constant(value: float) -> Elements:
            return self.constant(value, a.ndim - 1)

        def unknown(element: Expression) -> Expression:
            return self._on.opaque(f"function {fn}", element)

        match fn:
            case "relu":
                return self.maximum(a, constant(0.0))
            case "abs":
                return self.maximum(a, self.mul(constant(-1.0), a))
            case _ if fn == ERF:
                return _each(self._on.erf, 1)(a)
            case _ if fn == GELU:
                return gelu_by_erf(a, self, constant)
            case _ if fn in CONSTANTS:
                return form(fn, a, self, constant)
            case _:
                return _each(unknown, 1)(a)

    def opaque(self, kind: Kind, *operands: Elements) -> Elements:
        def of(*elements: Expression) -> Expression:
            return self._on.opaque(f"kind {kind.name}", *elements, commutes=kind.commutes)

        match kind:
            case Kind.LOG:
                return _each(self._on.log, 1)(*operands)
            case Kind.KEPT:
                return _each(self._on.where, 2)(*operands)
            case _:
                return _each(of, len(operands))(*operands)

    def maximum(self, a: Elements, b: Elements) -> Elements:
        def larger(one: Expression, other: Expression) -> Expression:
            return self._on.maximum((one, other))

        return _each(larger, 2)(a, b)

    def amax(self, a: Elements, over: tuple[int, ...]) -> Elements:
        return self._reduced(a, over, self._on.maximum)

    def sum(self, a: Elements, over: tuple[int, ...]) -> Elements:
        return self._reduced(a, over, self._on.total)

    def dot(self, a: Elements, b: Elements, over: tuple[int, ...]) -> Elements:
        return self.sum(self.mul(a, b), over)

    def running(self, a: Elements, over: tuple[int, ...], backwards: bool) -> Elements:
        return running_totals(a, over, backwards, self.add)

    def shape(self, a: Elements) -> tuple[int, ...]:
        return a.shape

    def rearrange(self, a: Elements, how: Rearrange) -> Elements:
        def filled(element: Expression | int) -> Expression:
            # Padding writes the number 0 into arrays of objects.
            return element if isinstance(element, Expression) else self._on.number(Fraction(0))

        return _each(filled, 1)(how(a))

    def assemble(self, shape: tuple[int, ...], pieces: Sequence[tuple[Index, Elements]]) -> Elements:
        return assemble_arrays(shape, pieces, np.dtype(object))

    def _reduced(
        self, a: Elements, over: tuple[int, ...], join: Callable[[Sequence[Expression]], Expression]
    ) -> Elements:
        found = np.empty([1 if i in over else size for i, size in enumerate(a.shape)], object)
        for index in np.ndindex(found.shape):
            parts = [range(size) if i in over else (index[i],) for i, size in enumerate(a.shape)]
            found[index] = join([cast(Expression, a[place]) for place in product(*parts)])
        return found


def _each(function: Callable[..., Expression], operands: int) -> Callable[..., Elements]:
    return cast(Callable[..., Elements], np.frompyfunc(function, operands, 1))
