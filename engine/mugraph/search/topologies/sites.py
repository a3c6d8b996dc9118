"""Where in the output's abstract expression a value can stand: four bit sets that let a pair of values be discarded
before its expression is built.

X is a subexpression of E where, for a normal form N that is E or inside of it, and a term q, q * X is contained in N
(abstract.py). Then, with x the first term of X, q * x is one of N's terms. So, for a pair X, Y:

    X + Y leads on only if the same q serves both in the same N;
    X * Y only if there is a term of N that each of them can be made a factor of;
    X / Y only if there is a term of N that X can be made a factor of, and whose denominator Y divides;
    max(X, Y) only if both are parts of one maximum that is a factor of N.
"""

from __future__ import annotations

from typing import NamedTuple

from mugraph.search.algebra.abstract import NF, Algebra


class Marks(NamedTuple):
    """Of one abstract expression X, as bits.

    cofactors: pairs (N, q) with q * X contained in N; none where X is no subexpression
    factor:    terms of the Ns that are q * x, x the first term of X
    divisor:   terms of the Ns whose denominator X divides
    part:      maxima of the Ns that X is a part of
    anywhere:  nothing is asked
    """

    cofactors: int
    factor: int
    divisor: int
    part: int
    anywhere: int = 1


MARKS = Marks._fields
"""By which a kind says where a pair of values can stand (`sites`)."""
ANYWHERE = "anywhere"


class Sites:
    """The terms of one goal and of everything inside of it."""

    def __init__(self, algebra: Algebra, goal: NF) -> None:
        self._algebra = algebra
        self._places = [(nf, term) for nf in algebra.within(goal) for term in algebra.terms_of(nf)]
        self._maxima = list(dict.fromkeys(m for nf in algebra.within(goal) for m in algebra.maxima_of(nf)))
        self._numbers: dict[tuple[NF, int], int] = {}
        self._marks: dict[NF, Marks] = {}

    def marks(self, x: NF) -> Marks:
        found = self._marks.get(x)
        if found is None:
            found = self._marks[x] = self._find(x)
        return found

    def _find(self, x: NF) -> Marks:
        algebra, numbers = self._algebra, self._numbers
        cofactors = factor = divisor = 0
        for place, (nf, term) in enumerate(self._places):
            q = algebra.cofactor(x, nf, term)
            if q is not None:
                factor |= 1 << place
                cofactors |= 1 << numbers.setdefault((nf, q), len(numbers))
            if algebra.divides_denominator(x, term):
                divisor |= 1 << place
        part = sum(1 << i for i, members in enumerate(self._maxima) if algebra.is_part_of(x, members))
        return Marks(cofactors, factor, divisor, part)
