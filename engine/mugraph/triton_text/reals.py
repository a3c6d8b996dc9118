"""What a kernel's floating-point numbers are over the fields: a pair of residues, or none at all.

Minus and plus infinity and NaN are states of an element. The exponential of minus infinity is 0, a maximum passes it
over, and what has no value (infinity less infinity, 0 / 0, a lane that was loaded under a mask without `other`) is NaN,
which no output may hold. Whether a residue is larger than another is decided as verification/order.py decides it.

The first dimension of every array runs over blocks. Arrays have size 1 where nothing varies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, isnan, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.kinds import Kind
from mugraph.triton_text.refusals import Unreadable
from mugraph.verification import modular
from mugraph.verification.constants import LN_2 as LOGARITHM
from mugraph.verification.constants import read
from mugraph.verification.field import FieldArithmetic, FieldValue, P, Q
from mugraph.verification.modular import mod

Residues = NDArray[np.int64]
States = NDArray[np.uint8]

FINITE, NAN, NEGATIVE, POSITIVE = 0, 1, 2, 3
"""Negative and positive infinity."""
LN_2 = log(2)
_SIMPLE = 100
"""Primes of a factor beside log2(e)."""


@dataclass(frozen=True, slots=True)
class Real:
    """p, q: residues (q absent after an exponential). state: None where every element is a number; what is no number
    has the residue 0."""

    p: Residues
    q: Residues | None
    state: States | None = None

    def each(self, how: Callable[[NDArray[Any]], NDArray[Any]]) -> Real:
        """The same rearrangement of all arrays."""
        return Real(
            how(self.p), None if self.q is None else how(self.q), None if self.state is None else how(self.state)
        )


def _settled(p: Residues, q: Residues | None, state: States | None) -> Real:
    """Without a state that says nothing; 0 where there is no number."""
    if state is None or not state.any():
        return Real(p, q)
    finite = state == FINITE
    return Real(np.where(finite, p, 0), None if q is None else np.where(finite, q, 0), state)


class Reals:
    """The operations, in one draw of the fields."""

    def __init__(self, field: FieldArithmetic) -> None:
        self.field = field
        self._constants: dict[tuple[float, int], Real] = {}
        self._codes: dict[str, set[int]] = {}
        self.clamps, self.has_clamped = True, False
        """Whether a conversion to a type of eight bits is known to clamp, as a GPU's does; and one was."""

    def codes(self, stored: str) -> set[int]:
        """Numbers, by their first residues, that are known to be those of a type of eight bits."""
        return self._codes.setdefault(stored, set())

    def constant(self, value: float, rank: int) -> Real:
        found = self._constants.get((value, rank))
        if found is None:
            found = self._constant(value, rank)
            if not isnan(value):
                self._constants[value, rank] = found
        return found

    def _constant(self, value: float, rank: int) -> Real:
        shape = (1,) * (rank + 1)
        if not isfinite(value):
            state = NAN if isnan(value) else POSITIVE if value > 0 else NEGATIVE
            zero = np.zeros(shape, np.int64)
            return Real(zero, zero if self.field.with_q else None, np.full(shape, state, np.uint8))
        found = self.field.constant(_spelled(value), rank)
        return Real(found.p, found.q)

    def add(self, a: Real, b: Real) -> Real:
        q = None if a.q is None or b.q is None else mod(a.q + b.q, Q)
        return _settled(mod(a.p + b.p, P), q, added_states(a.state, b.state))

    def negative(self, a: Real) -> Real:
        state = None
        if a.state is not None:
            state = np.array([FINITE, NAN, POSITIVE, NEGATIVE], np.uint8)[a.state]
        return Real(mod(-a.p, P), None if a.q is None else mod(-a.q, Q), state)

    def mul(self, a: Real, b: Real, sign_a: float | None = None, sign_b: float | None = None) -> Real:
        """sign: of a factor that is one known number"""
        q = None if a.q is None or b.q is None else mod(a.q * b.q, Q)
        state = multiplied_states(a.state, b.state, sign_a, sign_b)
        return _settled(mod(a.p * b.p, P), q, state)

    def div(self, a: Real, b: Real, sign_b: float | None = None) -> Real:
        """What is divided by zero is no number."""
        inverse = modular.inverse(b.p, P)
        q = None if a.q is None or b.q is None else mod(a.q * modular.inverse(b.q, Q), Q)
        zero = b.p == 0 if b.state is None else (b.p == 0) & (b.state == FINITE)
        state: States | None = np.where(zero, NAN, FINITE).astype(np.uint8) if zero.any() else None
        if b.state is not None:  # by infinity: 0, of an infinity nothing
            first = np.zeros(1, np.uint8) if a.state is None else a.state
            state = np.where((b.state == NAN) | (first != FINITE) | zero, NAN, FINITE).astype(np.uint8)
        elif a.state is not None:
            kept = multiplied_states(a.state, None, None, sign_b)
            state = kept if state is None or kept is None else np.where(zero, NAN, kept).astype(np.uint8)
        return _settled(mod(a.p * inverse, P), q, state)

    def exp(self, a: Real) -> Real:
        found = self.field.exp(_value(a))
        p, state = found.p[0], a.state
        if state is not None:
            p, state = np.where(state == FINITE, p, 0), np.where(state == NEGATIVE, FINITE, state).astype(np.uint8)
        return _settled(p, None, state)

    def sqrt(self, a: Real) -> Real:
        found = self.field.sqrt(_value(a))
        state = a.state
        if state is not None:
            state = np.where(state == NEGATIVE, NAN, state).astype(np.uint8)
        return _settled(found.p[0], None if found.q is None else found.q[0], state)

    def unary(self, fn: str, a: Real) -> Real:
        found = self.field.unary(fn, _value(a))
        state = None if a.state is None else np.where(a.state == FINITE, FINITE, NAN).astype(np.uint8)
        return _settled(found.p[0], None if found.q is None else found.q[0], state)

    def opaque(self, kind: Kind, *operands: Real) -> Real:
        found = self.field.opaque(kind, *map(_value, operands))
        states = [np.where(a.state == FINITE, FINITE, NAN).astype(np.uint8) for a in operands if a.state is not None]
        state = None
        for one in states:
            state = one if state is None else np.maximum(state, one)
        return _settled(found.p[0], None if found.q is None else found.q[0], state)

    def maximum(self, a: Real, b: Real, *, propagate: bool) -> Real:
        """propagate: NaN wins, else it loses"""
        return self.chosen(~self._before(a, b, nan_last=propagate), a, b)

    def minimum(self, a: Real, b: Real, *, propagate: bool) -> Real:
        return self.negative(self.maximum(self.negative(a), self.negative(b), propagate=propagate))

    def amax(self, a: Real, axis: int, *, propagate: bool = False) -> Real:
        """axis: of the arrays"""
        places, level = self._places(a, nan_last=propagate)
        if level is not None:  # the last of those of the highest level
            places, level = np.broadcast_arrays(places, level)
            places = np.where(level == level.max(axis, keepdims=True), places | np.uint64(1), np.uint64(0))
        at = np.expand_dims(places.argmax(axis), axis)
        return a.each(lambda array: np.take_along_axis(np.broadcast_to(array, places.shape), at, axis))

    def less(self, a: Real, b: Real) -> NDArray[np.bool_]:
        """Every comparison with NaN is false."""
        return self._before(a, b, nan_last=False) & ~_is(a, NAN) & ~_is(b, NAN)

    def equal(self, a: Real, b: Real) -> NDArray[np.bool_]:
        same = a.p == b.p
        if a.q is not None and b.q is not None:
            same = same & (a.q == b.q)
        if a.state is not None or b.state is not None:
            first, second = (np.zeros(1, np.uint8) if x.state is None else x.state for x in (a, b))
            same = same & (first == second) & (first != NAN)
        return same

    def chosen(self, where: NDArray[np.bool_], a: Real, b: Real) -> Real:
        q = None
        if a.q is not None and b.q is not None:
            q = np.where(where, a.q, b.q)
        elif self.field.with_q and (a.q is not None or b.q is not None):
            q = _of_the_only(where, a, b)
        state = None
        if a.state is not None or b.state is not None:
            first, second = (np.zeros(1, np.uint8) if x.state is None else x.state for x in (a, b))
            state = np.where(where, first, second)
        return _settled(np.where(where, a.p, b.p), q, state)

    def sum(self, a: Real, axis: int, size: int) -> Real:
        """size: of the tile along the axis, which the array may not vary along"""
        if a.p.shape[axis] == 1 and size > 1:
            p, q = mod(a.p * size, P), None if a.q is None else mod(a.q * size, Q)
            return Real(p, q, a.state)
        p = mod(a.p.sum(axis, keepdims=True), P)
        q = None if a.q is None else mod(a.q.sum(axis, keepdims=True), Q)
        state = None
        if a.state is not None:
            has = [(a.state == kind).any(axis, keepdims=True) for kind in (NAN, NEGATIVE, POSITIVE)]
            state = np.where(
                has[0] | (has[1] & has[2]), NAN, np.where(has[1], NEGATIVE, np.where(has[2], POSITIVE, FINITE))
            ).astype(np.uint8)
        return _settled(p, q, state)

    def cumsum(self, a: Real, axis: int) -> Real:
        """Raises Unreadable where something is no number."""
        if a.state is not None:
            raise Unreadable("tl.cumsum of what is no number is not read")
        return Real(mod(a.p.cumsum(axis), P), None if a.q is None else mod(a.q.cumsum(axis), Q))

    def dot(self, a: Real, b: Real) -> Real:
        """[blocks, (batch,) m, k] and [blocks, (batch,) k, n]"""
        p = modular.matmul(a.p, b.p, P)
        q = None if a.q is None or b.q is None else modular.matmul(a.q, b.q, Q)
        state = None
        if a.state is not None or b.state is not None:  # what is no number makes its rows, or columns, none
            rows = _is(a, NAN, any_state=True).any(-1, keepdims=True)
            columns = _is(b, NAN, any_state=True).any(-2, keepdims=True)
            state = np.where(rows | columns, NAN, FINITE).astype(np.uint8)
            state = np.broadcast_to(state, p.shape)
        return _settled(p, q, state)

    def _before(self, a: Real, b: Real, *, nan_last: bool) -> NDArray[np.bool_]:
        (one, level_a), (two, level_b) = self._places(a, nan_last=nan_last), self._places(b, nan_last=nan_last)
        before = one < two
        if level_a is None and level_b is None:
            return before
        first, second = (np.full(1, 2, np.uint8) if x is None else x for x in (level_a, level_b))
        return (first < second) | ((first == second) & (first == 2) & before)

    def _places(self, a: Real, *, nan_last: bool) -> tuple[NDArray[np.uint64], NDArray[np.uint8] | None]:
        """Places of numbers, and levels: 1 below all numbers, 2 for numbers, 3 above."""
        places = self.field.places(_value(a))[0]
        if a.state is None:
            return places, None
        levels = np.array([2, 4 if nan_last else 0, 1, 3], np.uint8)
        return places, levels[a.state]


@lru_cache(maxsize=4096)
def _spelled(value: float) -> float:
    """The number that is meant by log2(e), or ln 2, in the digits that a float32 holds, times a simple one."""
    if any(base == LOGARITHM for base, _ in read(value).halves):
        return value
    for exact in (1 / LN_2, LN_2):
        for digits in range(6, 16):
            times = value / round(exact, digits)
            if all(isinstance(base, int) and base < _SIMPLE for base, _ in read(times).halves):
                return times * exact
    return value


def _value(a: Real) -> FieldValue:
    return FieldValue(a.p[None], None if a.q is None else a.q[None])


def _is(a: Real, kind: int, *, any_state: bool = False) -> NDArray[np.bool_]:
    if a.state is None:
        return np.zeros((1,) * a.p.ndim, np.bool_)
    return a.state != FINITE if any_state else a.state == kind


def _of_the_only(where: NDArray[np.bool_], a: Real, b: Real) -> Residues | None:
    """The second residues where the value that has none is nowhere a number that is taken."""
    lacking, taken = (b, ~where) if a.q is not None else (a, where)
    having = a if a.q is not None else b
    if lacking.state is None or (taken & (lacking.state == FINITE)).any() or having.q is None:
        return None
    return np.where(taken, 0, having.q)


def added_states(a: States | None, b: States | None) -> States | None:
    """Of a sum."""
    if a is None or b is None:
        return b if a is None else a
    clash = ((a == NEGATIVE) & (b == POSITIVE)) | ((a == POSITIVE) & (b == NEGATIVE))
    return np.where(clash | (a == NAN) | (b == NAN), NAN, np.maximum(a, b)).astype(np.uint8)


def multiplied_states(a: States | None, b: States | None, sign_a: float | None, sign_b: float | None) -> States | None:
    """Of a product: an infinity times a number of unknown sign is no number that we know."""
    if a is None and b is None:
        return None
    if a is not None and b is not None:
        return np.where((a == FINITE) & (b == FINITE), FINITE, NAN).astype(np.uint8)
    state, sign = (a, sign_b) if a is not None else (b, sign_a)
    assert state is not None
    if sign is None or sign == 0 or isnan(sign):
        return np.where(state == FINITE, FINITE, NAN).astype(np.uint8)
    turned = np.array([FINITE, NAN, POSITIVE, NEGATIVE] if sign < 0 else [FINITE, NAN, NEGATIVE, POSITIVE], np.uint8)
    return turned[state]
