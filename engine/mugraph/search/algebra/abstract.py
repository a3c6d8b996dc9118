"""Abstract subexpressions (Mirage §4.3), decided exactly and without a solver.

The axioms A_eq and A_sub of Mirage's Table 2 are Horn clauses; their initial model has a normal form (normal_forms.py),
so the subexpression relation is decided by division: X is part of E where, for a normal form N that is E or inside of
it, some q * X is contained in N. What is less of a maximum, fewer members or smaller parts, is a subexpression too.

A *quotient* term may have no numerator (no atoms, no F, no S); such terms occur inside this module only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from mugraph.search.algebra.normal_forms import ABSENT, NF, Members, NormalForms, Parts

__all__ = ["NF", "Algebra", "Members", "Parts"]


class Algebra(NormalForms):
    """Normal forms, and which is part of which. by_form: as of normal forms"""

    def __init__(self, by_form: Collection[str] = ()) -> None:
        super().__init__(by_form)
        self._quotients: dict[tuple[int, int], int | None] = {}
        self._nquots: dict[tuple[int, int], int | None] = {}
        self._subs: dict[tuple[NF, NF], bool] = {}

    def sub(self, x: NF, e: NF) -> bool:
        """Is `x` an abstract subexpression of `e`: A_eq and A_sub entail subexpr(x, e)?"""
        if x == e:
            return True
        key = (x, e)
        found = self._subs.get(key)
        if found is None:
            found = self._into(x, e) or self._is_part(x, e) or any(self.sub(x, inner) for inner in self._inner(e))
            self._subs[key] = found
        return found

    def cofactor(self, x: NF, e: NF, term: int) -> int | None:
        """The term q for which q times x's first term is `term`; None if not all of q * x is contained in e."""
        q = self._tquot(term, self._nfs[x][0][0])
        if q is None:
            return None
        whole = dict(self._nfs[e])
        return q if all(whole.get(t, 0) >= n for t, n in self._scaled(q, x).items()) else None

    def maxima_of(self, a: NF) -> list[Members]:
        """The maxima among its factors."""
        return [self._maxima[atom] for t, _ in self._nfs[a] for atom in self._terms[t][1] if atom in self._maxima]

    def is_part_of(self, x: NF, members: Members) -> bool:
        """Is every member of `x` one of these members, along the same parts of axes or fewer of them?"""
        return all(any(nf == own and k % n == 0 for k, nf in members) for n, own in self._members(x))

    def divides_denominator(self, x: NF, term: int) -> bool:
        """Is the term's denominator a multiple of `x`?"""
        denominator = self._terms[term][4]
        return denominator != ABSENT and self._nquot(denominator, x) is not None

    # ------------------------------------------------------------------ dividing

    def _is_part(self, x: NF, e: NF) -> bool:
        return bool(self._maxima) and any(self.is_part_of(x, members) for members in self.maxima_of(e))

    def _tquot(self, e: int, x: int) -> int | None:
        """The term q with q * x == e, or None. It is unique, and may have no numerator."""
        key = (e, x)
        if key in self._quotients:
            return self._quotients[key]
        result: int | None = None
        k, atoms, f, s, d = self._terms[e]
        k2, atoms2, f2, s2, d2 = self._terms[x]
        if k % k2 == 0:
            rest = _difference(atoms, atoms2)
            f_rest = self._minus(f, f2)
            if rest is not None and f_rest is not None:
                s_rest = self._nquot(s, s2)
                if s_rest is not None:
                    d_rest = self._nquot(d, d2)
                    if d_rest is not None:
                        result = self._term((k // k2, rest, f_rest, s_rest, d_rest))
        self._quotients[key] = result
        return result

    def _minus(self, e: NF, x: NF) -> NF | None:
        """Multiset difference of exponents (exp(a) * exp(b) = exp(a + b)), ABSENT where nothing is left."""
        if not x:
            return e
        if not e:
            return None
        left = dict(self._nfs[e])
        for term, count in self._nfs[x]:
            have = left.get(term, 0)
            if have < count:
                return None
            left[term] = have - count
        rest = [(term, count) for term, count in left.items() if count]
        return self._nf(rest) if rest else ABSENT

    def _nquot(self, e: NF, x: NF) -> NF | None:
        """The normal form q with q * x == e: exact polynomial division with non-negative coefficients.

        ABSENT where e == x (or both are absent), None where there is no such q.
        """
        if not x:
            return e
        if not e:
            return None
        if e == x:
            return ABSENT
        key = (e, x)
        if key in self._nquots:
            return self._nquots[key]
        result = self._divide(Counter(dict(self._nfs[e])), x)
        found = self._nquots[key] = None if result is None else self._nf(Counter(result).items())
        return found

    def _divide(self, left: Counter[int], x: NF) -> list[int] | None:
        """Terms whose products with x make up the multiset `left`; backtracking over which term of x made the least.

        Without recursion: sums may have thousands of terms.
        """
        if sum(left.values()) % sum(count for _, count in self._nfs[x]):
            return None
        found: list[int] = []
        open_steps = [self._steps(left, x)]
        while left:
            step = next(open_steps[-1], None)
            if step is not None:
                q, left = step
                found.append(q)
                open_steps.append(self._steps(left, x))
                continue
            open_steps.pop()
            if not open_steps:
                return None
            found.pop()
        return found

    def _steps(self, left: Counter[int], x: NF) -> Iterator[tuple[int, Counter[int]]]:
        """The terms q that may have made the least term with one of x's, each with what q * x leaves."""
        least = min(left, default=0)
        for t, _ in self._nfs[x] if left else ():
            q = self._tquot(least, t)
            if q is None or not self._has_numerator(q):
                continue
            product = self._scaled(q, x)
            if all(left[term] >= count for term, count in product.items()):
                yield q, left - product

    def _has_numerator(self, t: int) -> bool:
        _, atoms, f, s, _ = self._terms[t]
        return bool(atoms or f or s)

    def _scaled(self, q: int, x: NF) -> Counter[int]:
        """The multiset q * x."""
        product: Counter[int] = Counter()
        for t, n in self._nfs[x]:
            product[self._tmul(q, t)] += n
        return product

    def _into(self, x: NF, e: NF) -> bool:
        """Is e == x * q + r for a term q and a rest r? (x * (q1 + q2) + r is x * q1 + r' too, so one term suffices.)"""
        whole = dict(self._nfs[e])
        first = self._nfs[x][0][0]
        for t in whole:
            q = self._tquot(t, first)
            if q is not None and all(whole.get(term, 0) >= n for term, n in self._scaled(q, x).items()):
                return True
        return False


def _difference(atoms: tuple[int, ...], minus: tuple[int, ...]) -> tuple[int, ...] | None:
    """Difference of sorted multisets, None where `minus` is not contained."""
    if not minus:
        return atoms
    rest: list[int] = []
    j = 0
    for atom in atoms:
        if j < len(minus) and atom == minus[j]:
            j += 1
        else:
            rest.append(atom)
    return tuple(rest) if j == len(minus) else None
