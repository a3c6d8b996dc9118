"""Polynomials over the rationals in numbered atoms, with negative and fractional powers: the ring that proofs compute
in (proof.py)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

Power = int | Fraction
Monomial = tuple[tuple[int, Power], ...]
"""(atom, power), sorted by atom; no power is 0. One that is no whole number is a `_Part`."""
Polynomial = Mapping[Monomial, Fraction]
"""Monomial -> its coefficient; none is 0. Never changed once made."""

ZERO: Polynomial = {}
ONE: Polynomial = {(): Fraction(1)}


class _Part(Fraction):
    """A power that is no whole number. Monomials are keys, and the hash of a fraction takes longer than their product:
    it is computed once."""

    __slots__ = ("_hash",)

    def __new__(cls, numerator: int, denominator: int) -> _Part:
        part = super().__new__(cls, numerator, denominator)
        part._hash = Fraction.__hash__(part)
        return part

    def __hash__(self) -> int:
        return self._hash


class Unproved(Exception):
    """No proof was found; the message says why, in a clause."""


class Work:
    """What a proof may still spend. A proof that would take more is none."""

    def __init__(self, steps: int, terms: int) -> None:
        """steps: products and sums of two terms, in all. terms: of one polynomial"""
        self._steps, self._terms = steps, terms

    def spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise Unproved("its expressions take too much work to write out")

    def kept(self, a: Polynomial) -> Polynomial:
        if len(a) > self._terms:
            raise Unproved(f"an expression has over {self._terms} terms")
        return a


def number(value: Fraction) -> Polynomial:
    return {(): value} if value else ZERO


def atom(which: int, power: Power = 1) -> Polynomial:
    return {((which, as_power(power)),): Fraction(1)}


def plus(a: Polynomial, b: Polynomial) -> Polynomial:
    if len(a) < len(b):
        a, b = b, a
    total = dict(a)
    for monomial, coefficient in b.items():
        found = total.get(monomial, 0) + coefficient
        if found:
            total[monomial] = found
        else:
            del total[monomial]
    return total


def scaled(a: Polynomial, by: Fraction) -> Polynomial:
    return {monomial: coefficient * by for monomial, coefficient in a.items()} if by else ZERO


def joined(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    if not a or not b:
        return a or b
    if len(a) < len(b):
        a, b = b, a
    return _with_few(a, b) if len(a) >= _MANY * len(b) else _with_many(a, b)


def _with_many(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for which, power in b:
        before = powers.get(which)
        if before is None:
            powers[which] = power
        elif both := before + power:
            powers[which] = as_power(both)
        else:
            del powers[which]
    return tuple(sorted(powers.items()))


def _with_few(a: Monomial, b: Monomial) -> Monomial:
    """Each of the few is put in its place."""
    found, at = list(a), 0
    for factor in b:
        which, power = factor
        at = bisect_left(found, (which,), at)
        if at == len(found) or found[at][0] != which:
            found.insert(at, factor)
        elif both := found[at][1] + power:
            found[at] = which, as_power(both)
        else:
            del found[at]
    return tuple(found)


def raised(a: Monomial, power: Power) -> Monomial:
    return tuple((which, as_power(own * power)) for which, own in a)


def half(power: Power) -> Power:
    return as_power(Fraction(power, 2))


def content(*polynomials: Polynomial) -> Fraction:
    """The positive rational that all coefficients are whole multiples of, without a common factor; 1 if all are 0."""
    above, below = 0, 1
    for polynomial in polynomials:
        for coefficient in polynomial.values():
            above, below = gcd(above, coefficient.numerator), lcm(below, coefficient.denominator)
    return Fraction(above, below) if above else Fraction(1)


def common(a: Polynomial) -> Monomial:
    """The least power of each atom in any term: what all terms share, where negative powers count as lower."""
    terms = [dict(monomial) for monomial in a]
    shared = {which: min(term.get(which, 0) for term in terms) for which in {w for term in terms for w in term}}
    return tuple(sorted((which, power) for which, power in shared.items() if power))


def leading(a: Polynomial) -> Fraction:
    """The coefficient of the first term, in an order of the monomials. The polynomial is not 0."""
    return a[min(a)]


def as_power(power: Power) -> Power:
    """The same, as monomials have it."""
    if power.denominator == 1:
        return power.numerator
    return power if type(power) is _Part else _part(power.numerator, power.denominator)


_part = lru_cache(1 << 12)(_Part)
_MANY = 8
"""Times as many factors: then sorting all of them again takes longer than looking for the places of the others."""
