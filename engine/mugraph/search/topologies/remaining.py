"""How far a value is from the output: a lower bound of the operators that any graph needs besides those below it.

Let a value v with the graph C below it lie in a whole graph G. Operators have one result; those of two operands join.
In a graph with one sink, edges counted twice give

    joins = leaves - 1 + excess          (excess: uses of results beyond the first of each)

for C and for G, so that outside of C there are at least as many joins as leaves that C lacks, plus G's further excess.
That is bounded by multiplicity: `occurrences` of a leaf in one term of an abstract expression (inside of denominators,
roots and functions as well) add up in products, quotients and maxima, and keep their maximum in sums, so they are at
most doubled by each further use of a result. Functions, accumulators and nested roots need an operator each besides,
and so do sums over a tile that cannot be the same one.

All of it follows from abstract expressions alone, which never lose a part. Nothing is assumed of C: the bound holds for
every graph of v.

A function that the algebra takes by its form (through_exp.py) is one operator and brings an exponential, constants
and quotients, and its argument several times. One operator brings no more than one exponential or one function that has
no form, and no leaf but constants of forms. So where there are any, such constants and further uses are not counted,
nor quotients, where a sigmoid brings them: G is then a smaller graph than the one with the forms written out, of which
all else that is said here holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mugraph.ops.functions.through_exp import CONSTANTS, SIGMOID
from mugraph.search.algebra.abstract import NF, Algebra, Parts


@dataclass(frozen=True, slots=True)
class Content:
    """What is in an abstract expression, at any depth.

    leaves:      leaf -> times it occurs in a term, at most
    functions:   exp and what stands for a unary operator on one expression; each needs an operator
    roots, quotients: how deep they are nested
    accumulated: loops' primes in it, as bits
    reduced:     is there a sum over a tile?
    """

    leaves: dict[int, int]
    functions: frozenset[int]
    roots: int
    quotients: int
    accumulated: int
    reduced: bool


@dataclass(frozen=True, slots=True)
class _Summed:
    """A term q * u of a normal form N where u is a term of a sum s, so that all of q * s is in N. Of leaves with the
    axis s sums over, and s has at least one:

    around: those in N: all of s's are among them
    near:   those of which s has at least one: in the term itself or, where u has none, in other multiples of q
    """

    around: frozenset[int]
    near: frozenset[int]

    def is_apart(self, other: _Summed) -> bool:
        """Can no sum that makes this term make the other one?"""
        return not self.around & other.near


class Remaining:
    """Distances to one goal."""

    def __init__(self, algebra: Algebra, goal: NF, loop_primes: Iterable[int], tiles: Mapping[int, Collection[NF]],
                 dots: bool) -> None:  # fmt: skip
        """tiles: the prime of each axis' tile -> leaves with that axis. dots: may one operator both join and reduce?"""
        self._algebra, self._dots = algebra, dots
        self._loop_primes, self._tile_primes = tuple(loop_primes), tuple(tiles)
        self._contents: dict[NF, Content] = {}
        self._distances: dict[NF, int] = {}
        self._sizes: dict[NF, int] = {}
        self.goal = goal
        numbers = {number for fn in algebra.by_form for number in CONSTANTS[fn]}
        self._brought = frozenset(leaf for number in numbers for leaf in self._leaves(algebra.atom(number)))
        self._whole = self.content(goal)
        self._sums = self._distinct_sums(tiles)

    def after(self, nf: NF) -> int:
        """Operators outside of any graph of a value with this abstract expression, at least."""
        found = self._distances.get(nf)
        if found is None:
            found = self._distances[nf] = self._missing(self.content(nf)) if nf != self.goal else 0
        return found

    def within(self, nf: NF) -> int:
        """Operators in any graph of such a value, at least."""
        found = self._sizes.get(nf)
        if found is None:
            content = self.content(nf)
            leaves = content.leaves.keys() - self._brought
            most = max(content.leaves.values(), default=1) if not self._algebra.by_form else 1
            joins = max(0, len(leaves) - 1) + (most - 1).bit_length()
            alone = len(content.functions) + content.roots + content.accumulated.bit_count()
            sums = len(self._sums) if nf == self.goal else int(content.reduced)
            found = self._sizes[nf] = alone + self._joined(joins, content.quotients, sums)
        return found

    def _leaves(self, nf: NF) -> Collection[int]:
        return self.content(nf).leaves

    def content(self, nf: NF) -> Content:
        found = self._contents.get(nf)
        if found is None:
            found = self._contents[nf] = self._content(nf)
        return found

    def _missing(self, own: Content) -> int:
        whole = self._whole
        excess = lacking = 0
        for leaf, times in whole.leaves.items():
            have = own.leaves.get(leaf, 0)
            lacking += not have and leaf not in self._brought
            if not self._algebra.by_form:
                excess = max(excess, (-(-times // max(have, 1)) - 1).bit_length())
        alone = len(whole.functions - own.functions) + max(0, whole.roots - own.roots)
        alone += (whole.accumulated & ~own.accumulated).bit_count()
        quotients = max(0, whole.quotients - own.quotients)
        # A sum below the value has only the value's leaves in it.
        sums = sum(not (own.reduced and leaves & own.leaves.keys()) for leaves in self._sums)
        return alone + self._joined(lacking + excess, quotients, sums)

    def _joined(self, joins: int, quotients: int, sums: int) -> int:
        joins = max(joins, 0 if SIGMOID in self._algebra.by_form else quotients)
        return max(joins, sums) if self._dots else joins + sums

    def _distinct_sums(self, tiles: Mapping[int, Collection[NF]]) -> list[frozenset[int]]:
        """Summed terms of the goal no two of which one operator sums: of each, the leaves its sum may consist of."""
        summed = [term for prime, leaves in tiles.items() for term in self._summed(prime, leaves)]
        chosen: list[_Summed] = []
        for term in sorted(summed, key=lambda term: (len(term.around), sorted(term.around))):
            if all(other.is_apart(term) or term.is_apart(other) for other in chosen):
                chosen.append(term)
        return [term.around for term in chosen]

    def _summed(self, prime: int, leaves: Collection[NF]) -> Iterator[_Summed]:
        """The terms that are sums over the tiles of one axis. leaves: those with the axis."""
        long = {leaf for nf in leaves for leaf in self.content(nf).leaves}
        for nf in self._algebra.within(self.goal):
            parts = [part for part in self._algebra.parts_of(nf) if part.times % prime == 0]
            own = [Counter(leaf for leaf in part.leaves if leaf in long) for part in parts]
            every = [
                frozenset(own[i]).union(*(long & self.content(inner).leaves.keys() for inner in self._inner(part)))
                for i, part in enumerate(parts)
            ]
            for i in range(len(parts)):
                multiples = [every[j] for j in range(len(parts)) if j != i and own[j] >= own[i]]
                yield _Summed(every[i].union(*every), every[i].union(*multiples))

    def _content(self, nf: NF) -> Content:
        leaves: dict[int, int] = {}
        functions: set[int] = set()
        roots = quotients = accumulated = 0
        reduced = False
        for part in self._algebra.parts_of(nf):
            own = dict.fromkeys(part.leaves, 0)
            for leaf in part.leaves:
                own[leaf] += 1
            functions.update(part.functions)
            for bit, prime in enumerate(self._loop_primes):
                accumulated |= (part.times % prime == 0) << bit
            reduced = reduced or any(part.times % prime == 0 for prime in self._tile_primes)
            for inner in self._inner(part):
                content = self.content(inner)
                for leaf, times in content.leaves.items():
                    own[leaf] = own.get(leaf, 0) + times
                functions |= content.functions
                roots = max(roots, content.roots + (inner == part.root))
                quotients = max(quotients, content.quotients + (inner == part.denominator))
                accumulated |= content.accumulated
                reduced = reduced or content.reduced
            functions |= {0} if part.exponent else set()
            for leaf, times in own.items():
                leaves[leaf] = max(leaves.get(leaf, 0), times)
        return Content(leaves, frozenset(functions), roots, quotients, accumulated, reduced)

    def _inner(self, part: Parts) -> list[NF]:
        return [*part.arguments, *(nf for nf in (part.exponent, part.root, part.denominator) if nf)]


class Unbounded(Remaining):
    """Where nothing is known of distances: one operator of a composed kind brings more than these bounds allow for."""

    def after(self, nf: NF) -> int:
        return 0

    def within(self, nf: NF) -> int:
        return 0
