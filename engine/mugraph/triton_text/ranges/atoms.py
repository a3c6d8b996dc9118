"""The unknown integers, and what is known of each: its bounds, or what it was computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from mugraph.triton_text.ranges.formulas import Formula, at_most, every, less, opposite, replaced, same, some
from mugraph.triton_text.ranges.poly import ZERO, Poly, atom, multiple, number
from mugraph.triton_text.refusals import Unreadable, Wrong

Sort = Literal["size", "block", "loop", "lane", "derived", "index", "read"]


@dataclass(frozen=True)
class Atom:
    """
    facts:  that hold of it, of all its values
    extent: it is any number from 0 up to this, where nothing else is known of it
    least:  it is no smaller
    """

    name: str
    sort: Sort
    facts: tuple[Formula, ...]
    extent: Poly | None = None
    least: int = 0


class Atoms:
    """Numbers of one reading of a text. starts: where loops begin, by their counters"""

    def __init__(self) -> None:
        self.known: dict[str, Atom] = {}
        self.starts: dict[str, Poly] = {}
        self._split: dict[str, Poly] = {}
        self._derived: dict[tuple[object, ...], Poly] = {}

    def made(self, name: str, sort: Sort, facts: Iterable[Formula], extent: Poly | None = None, least: int = 0) -> str:
        while name in self.known:
            name += "'"
        self.known[name] = Atom(name, sort, tuple(facts), extent, least)
        return name

    def size(self, name: str, least: int, largest: int) -> Poly:
        found = self.made(name, "size", (), least=least)
        facts = (at_most(number(least), atom(found)), at_most(atom(found), number(largest)))
        self.known[found] = Atom(found, "size", facts, least=least)
        return atom(found)

    def define(self, name: str, facts: Iterable[Formula]) -> None:
        own = self.known[name]
        self.known[name] = Atom(name, own.sort, tuple(facts), own.extent, own.least)

    def below(self, name: str, sort: Sort, extent: Poly) -> Poly:
        """Any number from 0 up to the extent."""
        if extent.constant == 1:
            return ZERO
        found = self.made(name, sort, (), extent)
        facts = (at_most(ZERO, atom(found)), less(atom(found), extent))
        self.known[found] = Atom(found, sort, facts, extent)
        return atom(found)

    def counted(self, name: str, start: Poly, stop: Poly, step: int) -> tuple[str, Poly]:
        """The counter of a loop, and what the loop's variable is."""
        found = self.made(name, "loop", ())
        self.starts[found] = start
        value = start + number(step) * atom(found)
        self.known[found] = Atom(found, "loop", (at_most(ZERO, atom(found)), less(value, stop)))
        return found, value

    # --- what is derived

    def quotient(self, a: Poly, b: Poly) -> Poly:
        """Of numbers that are not negative, for which C, Python and this agree."""
        a, b = self.normal(a), self.normal(b)
        if b == ZERO:
            raise Wrong("values", "an integer is divided by zero")
        if not self.is_natural(a) or not self.is_natural(b):
            raise Unreadable("a number that may be negative is divided")
        exact = a.over(b)
        if exact is not None:
            return exact
        whole = multiple(a, b)
        rest = a - whole * b
        cut = self._cut(rest, b)
        if cut is not None:
            return whole + cut[0]
        most, divisor = self._most(rest), b.constant
        if self._is_below(rest, b) or (most is not None and divisor is not None and most < divisor):
            return whole
        if divisor is None:
            raise Unreadable(f"{a} is divided by {b}")
        key = ("//", rest, b)
        if key not in self._derived:
            name = self.made(f"({rest}) // {b}", "derived", ())
            q = atom(name)
            facts = (at_most(b * q, rest), less(rest, b * q + b))
            self.known[name] = Atom(name, "derived", facts)
            self._derived[key] = q
        return whole + self._derived[key]

    def remainder(self, a: Poly, b: Poly) -> Poly:
        quotient = self.quotient(a, b)
        return self.normal(a) - self.normal(b) * quotient

    def _is_below(self, a: Poly, b: Poly) -> bool:
        """Is it plain that it is smaller?"""
        return len(a.atoms) == 1 and a == atom(min(a.atoms)) and self.known[min(a.atoms)].extent == b

    def _cut(self, a: Poly, b: Poly) -> tuple[Poly, Poly] | None:
        """Quotient and remainder of one number, all of whose values come in whole groups: two numbers in its place."""
        if len(a.terms) != 1 or len(a.atoms) != 1 or a.terms[0][1] != 1 or len(a.terms[0][0]) != 1:
            return None
        (name,) = a.atoms
        own = self.known[name]
        groups = own.extent.over(b) if own.extent is not None else None
        if groups is None:
            return None
        q = self.below(f"{name} // {b}", own.sort, groups)
        r = self.below(f"{name} % {b}", own.sort, b)
        self._split[name] = q * b + r
        return q, r

    def smaller(self, a: Poly, b: Poly) -> Poly:
        return self._extreme("min", a, b)

    def larger(self, a: Poly, b: Poly) -> Poly:
        return self._extreme("max", a, b)

    def _extreme(self, op: str, a: Poly, b: Poly) -> Poly:
        a, b = self.normal(a), self.normal(b)
        difference = (a - b).constant
        if difference is not None:
            return a if (difference <= 0) == (op == "min") else b
        key = (op, frozenset((a, b)))
        if key not in self._derived:
            both = [self.is_natural(a), self.is_natural(b)]
            least = 0 if (any(both) if op == "max" else all(both)) else -1
            name = self.made(f"{op}({a}, {b})", "derived", ())
            one = atom(name)
            bounds = (at_most(one, x) if op == "min" else at_most(x, one) for x in (a, b))
            self.known[name] = Atom(name, "derived", (*bounds, some((same(one, a), same(one, b)))), least=least)
            self._derived[key] = one
        return self._derived[key]

    def chosen(self, where: Formula, a: Poly, b: Poly) -> Poly:
        """The one where it holds, else the other."""
        name = self.made(f"{a} or {b}", "derived", ())
        one = atom(name)
        here, there = every((where, same(one, a))), every((opposite(where), same(one, b)))
        self.known[name] = Atom(name, "derived", (some((here, there)),), least=-1)
        return one

    def is_natural(self, poly: Poly) -> bool:
        """Is it plain that it is not negative?"""
        negative = sum(factor for monomial, factor in poly.terms if not monomial and factor < 0)
        if any(factor < 0 for monomial, factor in poly.terms if monomial):
            return False
        if any(self.known[one].least < 0 for one in poly.atoms):
            return False
        least = 0
        for monomial, factor in poly.terms:
            if monomial:
                for one in monomial:
                    factor *= self.known[one].least
                least += factor
        return least + negative >= 0 or not negative

    def _most(self, poly: Poly) -> int | None:
        """What it is at most, as far as that is plain."""
        total = 0
        for monomial, factor in poly.terms:
            if factor < 0:
                return None
            for one in monomial:
                extent = self.known[one].extent
                if extent is None or extent.constant is None:
                    return None
                factor *= extent.constant - 1
            total += factor
        return total

    # --- what is to be assumed

    def normal(self, poly: Poly) -> Poly:
        """With the numbers that were put in place of others."""
        while poly.atoms & self._split.keys():
            poly = poly.replaced(self._split)
        return poly

    def normal_formula(self, formula: Formula) -> Formula:
        while formula.atoms & self._split.keys():
            formula = replaced(formula, self._split)
        return formula

    def facts(self, names: Iterable[str], without: Iterable[str] = ()) -> list[Formula]:
        """That hold of these numbers, and of those that they are made of. without: of which nothing is assumed"""
        seen, left, left_out = set[str](), list(names), set(without)
        found: list[Formula] = []
        while left:
            name = left.pop()
            if name in seen or name in left_out:
                continue
            seen.add(name)
            for fact in self.known[name].facts:
                fact = self.normal_formula(fact)
                found.append(fact)
                left += fact.atoms
        return found

    def depends(self, name: str) -> frozenset[str]:
        """The atoms that are not derived, which it is made of."""
        if self.known[name].sort != "derived":
            return frozenset((name,))
        made = (self.normal_formula(fact).atoms - {name} for fact in self.known[name].facts)
        return frozenset(base for atoms in made for one in atoms for base in self.depends(one))

    def varying(self, atoms: Iterable[str]) -> frozenset[str]:
        return frozenset(base for one in atoms for base in self.depends(one))

    def copied(self, values: Mapping[str, Poly], atoms: Iterable[str]) -> dict[str, Poly]:
        """`values`, and a copy of each number among these atoms that is derived from what has another value now."""
        found = dict(values)
        for name in sorted(atoms):
            if self.known[name].sort == "derived" and self.depends(name) & values.keys():
                self._copy(name, found)
        return found

    def _copy(self, name: str, values: dict[str, Poly]) -> None:
        if name in values:
            return
        own = self.known[name]
        facts = [self.normal_formula(fact) for fact in own.facts]
        values[name] = atom(copy := self.made(f"{name}*", "derived", (), least=own.least))
        for inner in sorted(every(facts).atoms - {name}):
            if self.known[inner].sort == "derived" and self.depends(inner) & values.keys():
                self._copy(inner, values)
        self.known[copy] = Atom(copy, "derived", tuple(replaced(fact, values) for fact in facts), least=own.least)
