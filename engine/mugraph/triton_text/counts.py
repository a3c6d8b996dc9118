"""The values of a text as Theorem 2 of Mirage counts them: exponential terms and degrees, not numbers.

Elements are places in a table of forms (verification/forms.py). The machine that runs a text over the fields moves them
as it moves residues.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind
from mugraph.ops.functions.through_exp import CONSTANTS
from mugraph.triton_text.reals import FINITE, Real, Reals, added_states, multiplied_states
from mugraph.verification.field import FieldArithmetic, FieldValue
from mugraph.verification.forms import Elements, Form, FormArithmetic, Unbounded

_MOST = 1_000_000
"""Operations on single elements, a few seconds."""


class CountField(FieldArithmetic):
    """As a program is counted. Raises Unbounded where Theorem 2 does not cover it, or it takes too long."""

    def __init__(self, rng: np.random.Generator, by_form: Collection[str]) -> None:
        super().__init__(rng, 1, with_q=False)
        self.forms = FormArithmetic(rng, frozenset(by_form) & frozenset(CONSTANTS))
        self._rng = rng
        self._table: list[Form] = []
        self._places: dict[int, int] = {}
        self._left = _MOST
        self._entered(self.forms.indicator(np.zeros(1, np.bool_)))  # place 0 is the number 0, as in all arrays

    def elements(self, a: NDArray[np.int64]) -> Elements:
        self._left -= a.size
        if self._left < 0:
            raise Unbounded("its terms are too many to be counted in seconds")
        found = np.empty(a.size, object)
        found[:] = [self._table[place] for place in a.reshape(-1).tolist()]
        return found.reshape(a.shape)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FieldValue:
        return self._value(self.forms.variables(rng, shape))

    def constant(self, value: float, rank: int) -> FieldValue:
        return self._value(self.forms.constant(value, rank))

    def indicator(self, where: NDArray[np.bool_]) -> FieldValue:
        return self._value(self.forms.indicator(where))

    def whole(self, numbers: NDArray[np.int64]) -> FieldValue:
        return self._value(self.forms.whole(numbers))

    def add(self, a: FieldValue, b: FieldValue) -> FieldValue:
        return self._value(self.forms.add(*self._both(a, b)))

    def mul(self, a: FieldValue, b: FieldValue) -> FieldValue:
        return self._value(self.forms.mul(*self._both(a, b)))

    def div(self, a: FieldValue, b: FieldValue) -> FieldValue:
        return self._value(self.forms.div(*self._both(a, b)))

    def sqrt(self, a: FieldValue) -> FieldValue:
        return self._value(self.forms.sqrt(self.elements(a.p)))

    def exp(self, a: FieldValue) -> FieldValue:
        return self._value(self.forms.exp(self.elements(a.p)))

    def unary(self, fn: str, a: FieldValue) -> FieldValue:
        if fn in self.by_form and fn not in CONSTANTS:
            raise Unbounded(f"{fn} is outside Theorem 2")
        return self._value(self.forms.unary(fn, self.elements(a.p)))

    def opaque(self, kind: Kind, *operands: FieldValue) -> FieldValue:
        arrays = np.broadcast_arrays(*(a.p for a in operands))
        return self._value(self.forms.opaque(kind, *map(self.elements, arrays)))

    def maximum(self, a: FieldValue, b: FieldValue) -> FieldValue:
        raise Unbounded("a maximum is outside Theorem 2")

    def amax(self, a: FieldValue, over: tuple[int, ...]) -> FieldValue:
        raise Unbounded("a maximum is outside Theorem 2")

    def places(self, a: FieldValue) -> NDArray[np.uint64]:
        raise Unbounded("a comparison of what is computed is outside Theorem 2")

    def sum(self, a: FieldValue, over: tuple[int, ...]) -> FieldValue:
        return self._value(self.forms.sum(self.elements(a.p), over))

    def dot(self, a: FieldValue, b: FieldValue, over: tuple[int, ...]) -> FieldValue:
        self._left -= int(np.prod(np.broadcast_shapes(a.p.shape, b.p.shape)))
        return self._value(self.forms.dot(self.elements(a.p), self.elements(b.p), over))

    def running(self, a: FieldValue, over: tuple[int, ...], backwards: bool) -> FieldValue:
        self._left -= a.p.size
        return self._value(self.forms.running(self.elements(a.p), over, backwards))

    def _both(self, a: FieldValue, b: FieldValue) -> tuple[Elements, Elements]:
        self._left -= int(np.prod(np.broadcast_shapes(a.p.shape, b.p.shape)))
        return self.elements(a.p), self.elements(b.p)

    def _value(self, elements: Elements) -> FieldValue:
        return FieldValue(self._entered(elements), None)

    def _entered(self, elements: Elements) -> NDArray[np.int64]:
        """Their places in the table. What is divided by is told by its identity, so one form has one place."""
        forms = cast(Sequence[Form], elements.reshape(-1).tolist())
        return np.array([self._place(form) for form in forms], np.int64).reshape(elements.shape)

    def _place(self, form: Form) -> int:
        if not form.terms and self._table:
            return 0
        found = self._places.get(id(form))
        if found is None:
            found = self._places[id(form)] = len(self._table)
            self._table.append(form)
        return found


class Counts(Reals):
    """The same, of the values that a text computes."""

    def __init__(self, field: CountField) -> None:
        super().__init__(field)
        self.counts = field

    def add(self, a: Real, b: Real) -> Real:
        return _real(self.counts.add(_value(a), _value(b)), added_states(a.state, b.state))

    def negative(self, a: Real) -> Real:
        return self.mul(a, self.constant(-1.0, a.p.ndim - 1), None, -1.0)

    def mul(self, a: Real, b: Real, sign_a: float | None = None, sign_b: float | None = None) -> Real:
        state = multiplied_states(a.state, b.state, sign_a, sign_b)
        return _real(self.counts.mul(_value(a), _value(b)), state)

    def div(self, a: Real, b: Real, sign_b: float | None = None) -> Real:
        if a.state is not None or b.state is not None or not b.p.all():
            raise Unbounded("a quotient of what is no number is outside Theorem 2")
        return _real(self.counts.div(_value(a), _value(b)), None)

    def less(self, a: Real, b: Real) -> NDArray[np.bool_]:
        raise Unbounded("a comparison of what is computed is outside Theorem 2")

    def equal(self, a: Real, b: Real) -> NDArray[np.bool_]:
        raise Unbounded("a comparison of what is computed is outside Theorem 2")

    def maximum(self, a: Real, b: Real, *, propagate: bool) -> Real:
        raise Unbounded("a maximum is outside Theorem 2")

    def amax(self, a: Real, axis: int, *, propagate: bool = False) -> Real:
        raise Unbounded("a maximum is outside Theorem 2")

    def sum(self, a: Real, axis: int, size: int) -> Real:
        if a.state is not None:
            raise Unbounded("a sum of what is no number is outside Theorem 2")
        shape = (*a.p.shape[:axis], size, *a.p.shape[axis + 1 :])
        return _real(self.counts.sum(FieldValue(np.broadcast_to(a.p, shape)[None], None), (axis + 1,)), None)

    def dot(self, a: Real, b: Real) -> Real:
        """[blocks, (batch,) m, k] and [blocks, (batch,) k, n]"""
        if a.state is not None or b.state is not None:
            raise Unbounded("a product of what is no number is outside Theorem 2")
        left, right = a.p[None, ..., None], b.p[None, ..., None, :, :]
        inner = left.ndim - 2
        found = self.counts.dot(FieldValue(left, None), FieldValue(right, None), (inner,)).p
        return Real(found[0].squeeze(inner - 1), None)

    def cumsum(self, a: Real, axis: int) -> Real:
        raise Unbounded("cumulative sums are not counted")


def _real(found: FieldValue, state: NDArray[Any] | None) -> Real:
    p = found.p[0]
    if state is None or not state.any():
        return Real(p, None)
    return Real(np.where(state == FINITE, p, 0), None, state)


def _value(a: Real) -> FieldValue:
    return FieldValue(a.p[None], None)
