"""Unknown integers as polynomials over atoms: sizes, program ids, loop counters, lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

Monomial = tuple[str, ...]
"""Atoms that are multiplied, in order; () for the constant."""


@dataclass(frozen=True)
class Poly:
    """terms: in order, none of them zero"""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Poly:
        return Poly(tuple(sorted((monomial, factor) for monomial, factor in terms.items() if factor)))

    @cached_property
    def atoms(self) -> frozenset[str]:
        return frozenset(atom for monomial, _ in self.terms for atom in monomial)

    @property
    def constant(self) -> int | None:
        """The number that it is; None if it varies."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    def __add__(self, other: Poly) -> Poly:
        found = dict(self.terms)
        for monomial, factor in other.terms:
            found[monomial] = found.get(monomial, 0) + factor
        return Poly.of(found)

    def __neg__(self) -> Poly:
        return Poly(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def __mul__(self, other: Poly) -> Poly:
        found: dict[Monomial, int] = {}
        for one, a in self.terms:
            for two, b in other.terms:
                monomial = tuple(sorted((*one, *two)))
                found[monomial] = found.get(monomial, 0) + a * b
        return Poly.of(found)

    def over(self, divisor: Poly) -> Poly | None:
        """The quotient, where a product of numbers and atoms divides it without rest."""
        if len(divisor.terms) != 1:
            return number(1) if self == divisor else None
        ((atoms, factor),) = divisor.terms
        found: dict[Monomial, int] = {}
        for monomial, own in self.terms:
            rest = without(monomial, atoms)
            if rest is None or own % factor:
                return None
            found[rest] = own // factor
        return Poly.of(found)

    def replaced(self, values: Mapping[str, Poly]) -> Poly:
        if not self.atoms & values.keys():
            return self
        found = ZERO
        for monomial, factor in self.terms:
            term = number(factor)
            for one in monomial:
                term = term * values.get(one, atom(one))
            found = found + term
        return found

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        return " + ".join(_term(monomial, factor) for monomial, factor in self.terms).replace("+ -", "- ")


def _term(monomial: Monomial, factor: int) -> str:
    names = " * ".join(monomial)
    if not names:
        return str(factor)
    return names if factor == 1 else f"-{names}" if factor == -1 else f"{factor} * {names}"


def without(monomial: Monomial, atoms: Iterable[str]) -> Monomial | None:
    """The product divided by these atoms; None where it does not hold them."""
    left = list(monomial)
    for one in atoms:
        if one not in left:
            return None
        left.remove(one)
    return tuple(left)


def multiple(poly: Poly, divisor: Poly) -> Poly:
    """How many times the divisor is in it: the first term of the divisor in each of its terms, where one that has more
    atoms than the others is first; of a constant, the whole part. Of another divisor it may be any number: whoever
    divides looks at what is left."""
    (atoms, factor), *_ = sorted(divisor.terms, key=lambda term: -len(term[0])) or [((), 0)]
    if not factor:
        return ZERO
    found: dict[Monomial, int] = {}
    for monomial, own in poly.terms:
        left = without(monomial, atoms)
        if left is not None and (own % factor == 0 or not monomial):
            found[left] = abs(own) // factor * (1 if own > 0 else -1)
    return Poly.of(found)


def number(value: int) -> Poly:
    return Poly((((), value),)) if value else Poly(())


def atom(name: str) -> Poly:
    return Poly((((name,), 1),))


def product(factors: Iterable[Poly]) -> Poly:
    found = ONE
    for factor in factors:
        found = found * factor
    return found


ZERO, ONE = number(0), number(1)
