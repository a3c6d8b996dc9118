"""What a search evaluates: small arrays over the field, with the primitives that kinds are made of (kinds/kind.py).

A number has residues mod P. Those mod Q are found when an exponential asks for them, and real numbers when a root does:
each number remembers the primitive it is made by.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from mugraph.ir.ops import Kind
from mugraph.ops.functions.through_exp import SIGMOID, form
from mugraph.search.algebra.field import (
    P,
    Q,
    Residues,
    inverse,
    joined,
    last,
    later,
    oracle,
    power_of_omega,
    running_sums,
    square_root,
)
from mugraph.search.topologies.signs import REALS, Reals, has_negative


class Undefined(Exception):
    """It divides by zero, or takes the root of a negative number."""


@dataclass(slots=True, eq=False)
class Number:
    """past_exp: there is an exponential in it, at any depth. made: the name of a primitive and what it is given."""

    p: Residues
    past_exp: bool = False
    made: tuple[object, ...] = ()
    q: Residues | None = None
    real: Reals | None = None


class Evaluation:
    """Primitives on numbers; each raises Undefined. `over`: slots.

    by_form:   functions that are computed as what they are made of
    random:    draws the constants, for arrays of `rank` axes
    roots_are_checked: of real numbers that are negative somewhere no root is taken
    """

    def __init__(self, by_form: Collection[str], random: np.random.Generator, rank: int) -> None:
        self._by_form, self._random, self._rank = by_form, random, rank
        self._constants: dict[float, Number] = {}
        self._second = _Second(self)
        self.roots_are_checked = False

    def constant(self, value: float) -> Number:
        """Equal constants are the same element, and nothing else is known of them."""
        found = self._constants.get(value)
        if found is None:
            p, q = (np.full((1,) * self._rank, self._random.integers(2, modulus)) for modulus in (P, Q))
            found = self._constants[value] = Number(p, made=("constant", value), q=q)
        return found

    def add(self, a: Number, b: Number) -> Number:
        return Number((a.p + b.p) % P, a.past_exp or b.past_exp, ("add", a, b))

    def mul(self, a: Number, b: Number) -> Number:
        return Number(a.p * b.p % P, a.past_exp or b.past_exp, ("mul", a, b))

    def div(self, a: Number, b: Number) -> Number:
        return Number(a.p * _inverse(b.p, P) % P, a.past_exp or b.past_exp, ("div", a, b))

    def sqrt(self, a: Number) -> Number:
        if self.roots_are_checked and has_negative(real(a)):
            raise Undefined
        return Number(square_root(a.p, P), a.past_exp, ("sqrt", a))

    def exp(self, a: Number) -> Number:
        """Of a value with an exponential in it nothing is known but that equal arguments give equal results."""
        exponent = oracle(a.p, -1, Q) if a.past_exp else self.second(a)
        return Number(power_of_omega(exponent), True, ("exp", a))

    def unary(self, fn: str, a: Number) -> Number:
        whole = self.by_form(fn, a)
        if whole is not None:
            return Number(whole.p, whole.past_exp, ("unary", fn, a))
        return Number(oracle(a.p, _salt(fn), P), a.past_exp, ("unary", fn, a))

    def opaque(self, kind: Kind, *operands: Number) -> Number:
        whole = joined([a.p for a in operands], kind.commutes)
        past_exp = any(a.past_exp for a in operands)
        return Number(oracle(whole, _salt(kind.name), P), past_exp, ("opaque", kind, *operands))

    def maximum(self, a: Number, b: Number) -> Number:
        return Number(np.where(later(a.p, b.p), a.p, b.p), a.past_exp or b.past_exp, ("maximum", a, b))

    def amax(self, a: Number, over: tuple[int, ...]) -> Number:
        return Number(last(a.p, by=a.p, slots=over), a.past_exp, ("amax", a, over))

    def sum(self, a: Number, over: tuple[int, ...]) -> Number:
        return Number(a.p.sum(axis=over, keepdims=True) % P, a.past_exp, ("sum", a, over))

    def dot(self, a: Number, b: Number, over: tuple[int, ...]) -> Number:
        p = (a.p * b.p % P).sum(axis=over, keepdims=True) % P
        return Number(p, a.past_exp or b.past_exp, ("dot", a, b, over))

    def running(self, a: Number, over: tuple[int, ...], backwards: bool) -> Number:
        return Number(running_sums(a.p, over, backwards) % P, a.past_exp, ("running", a, over, backwards))

    def by_form(self, fn: str, a: Number) -> Number | None:
        """The function as what it is made of, where the algebra has it so."""
        known = fn in self._by_form and (fn != SIGMOID or not a.past_exp)
        return form(fn, a, self, self.constant) if known else None

    def second(self, a: Number) -> Residues:
        """Residues mod Q, of a number with no exponential in it."""
        if a.q is None:
            primitive, *of = a.made
            a.q = getattr(self._second, str(primitive))(*of)
            assert a.q is not None
        return a.q


class _Second:
    """The primitives mod Q. Functions, and which of two is the larger, go by the residues mod P: both components are of
    the same number."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation, self._of = evaluation, evaluation.second

    def add(self, a: Number, b: Number) -> Residues:
        return (self._of(a) + self._of(b)) % Q

    def mul(self, a: Number, b: Number) -> Residues:
        return self._of(a) * self._of(b) % Q

    def div(self, a: Number, b: Number) -> Residues:
        return self._of(a) * _inverse(self._of(b), Q) % Q

    def sqrt(self, a: Number) -> Residues:
        return square_root(self._of(a), Q)

    def unary(self, fn: str, a: Number) -> Residues:
        whole = self._evaluation.by_form(fn, a)
        return oracle(a.p, _salt(fn) + 1, Q) if whole is None else self._of(whole)

    def opaque(self, kind: Kind, *operands: Number) -> Residues:
        return oracle(joined([a.p for a in operands], kind.commutes), _salt(kind.name) + 1, Q)

    def maximum(self, a: Number, b: Number) -> Residues:
        return np.where(later(a.p, b.p), self._of(a), self._of(b))

    def amax(self, a: Number, over: tuple[int, ...]) -> Residues:
        return last(self._of(a), by=a.p, slots=over)

    def sum(self, a: Number, over: tuple[int, ...]) -> Residues:
        return self._of(a).sum(axis=over, keepdims=True) % Q

    def dot(self, a: Number, b: Number, over: tuple[int, ...]) -> Residues:
        return (self._of(a) * self._of(b) % Q).sum(axis=over, keepdims=True) % Q

    def running(self, a: Number, over: tuple[int, ...], backwards: bool) -> Residues:
        return running_sums(self._of(a), over, backwards) % Q


def real(a: Number) -> Reals:
    """The same of real numbers; leaves are given theirs."""
    if a.real is None:
        primitive, *of = a.made
        given = [real(part) if isinstance(part, Number) else part for part in of]
        with np.errstate(all="ignore"):
            a.real = getattr(REALS, str(primitive))(*given)
        assert a.real is not None
    return a.real


def _inverse(x: Residues, modulus: int) -> Residues:
    found = inverse(x, modulus)
    if found is None:
        raise Undefined
    return found


def _salt(fn: str) -> int:
    return int.from_bytes(fn.encode()) * 2 + 1
