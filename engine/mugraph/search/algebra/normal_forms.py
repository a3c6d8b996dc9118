"""Abstract expressions (Mirage §4.3) in a normal form: equivalence under the axioms A_eq of its Table 2 is equality.

    term = (k, atoms, F, S, D)   k >= 1; atoms: sorted multiset of inputs, constants, functions of NFs, maxima;
                                 F: normal form under exp; S: under sqrt; D: the one denominator; 0 where absent
    NF   = multiset {term: count}

A maximum is an atom, with a set {(k, NF)}: it is the largest of the NFs, each along the parts of axes whose primes make
up k. It is a set because a maximum is associative, commutative and idempotent. It has k because a maximum along an axis
may be taken in parts, and of each operand of another maximum. It distributes over nothing else.

Everything is hash-consed to integers, so equality is `==` and every operation is memoised. 0 is never a term or an NF.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass

from mugraph.ir.ops import Kind
from mugraph.ops.functions.through_exp import SIGMOID, form

NF = int
"""A hash-consed normal form."""
Term = tuple[int, tuple[int, ...], int, int, int]
Members = frozenset[tuple[int, NF]]
"""Of a maximum: (k, NF)."""
ABSENT = 0


@dataclass(frozen=True, slots=True)
class Parts:
    """A term, taken apart: its number of summands, inputs and constants, atoms of functions of one expression, the
    arguments of all functions and maxima, and the normal forms under exp and sqrt and in the denominator (0 where
    absent)."""

    times: int
    leaves: tuple[int, ...]
    functions: tuple[int, ...]
    arguments: tuple[NF, ...]
    exponent: NF
    root: NF
    denominator: NF


class NormalForms:
    """One universe of hash-consed normal forms. Numbers of one instance mean nothing to another.

    by_form: functions that stand for what they are made of (through_exp.py); of all others nothing is known."""

    def __init__(self, by_form: Collection[str] = ()) -> None:
        self.by_form = frozenset(by_form)
        self._forms: dict[tuple[str, NF], NF] = {}
        self._exps: dict[NF, bool] = {}
        self._atoms: dict[tuple[str, Hashable], int] = {}
        self._arguments: dict[int, tuple[NF, ...]] = {}  # atom of a function -> its arguments
        self._maxima: dict[int, Members] = {}  # atom of a maximum -> its members
        self._term_ids: dict[Term, int] = {}
        self._terms: list[Term] = [(0, (), 0, 0, 0)]
        self._nf_ids: dict[tuple[tuple[int, int], ...], NF] = {}
        self._nfs: list[tuple[tuple[int, int], ...]] = [()]
        self._binary: dict[tuple[str, int, int], int] = {}
        self._inners: dict[NF, tuple[NF, ...]] = {}

    # ------------------------------------------------------------------ building

    def atom(self, name: Hashable) -> NF:
        """An input (by name) or a constant (by value): equal names are the same atom."""
        return self._one((1, (self._atom(("leaf", name)),), ABSENT, ABSENT, ABSENT))

    def unary(self, fn: str, argument: NF) -> NF:
        """A function nothing is known of but that equal arguments give equal results (silu, relu, ...), or what it is
        made of: a sigmoid so long as the argument has no exp."""
        if fn in self.by_form and (fn != SIGMOID or not self.has_exp(argument)):
            found = self._forms.get((fn, argument))
            if found is None:
                found = self._forms[fn, argument] = form(fn, argument, self, self.atom)
            return found
        atom = self._atom((fn, argument))
        self._arguments[atom] = (argument,)
        return self._one((1, (atom,), ABSENT, ABSENT, ABSENT))

    def opaque(self, kind: Kind, *arguments: NF) -> NF:
        """A function of several, of which nothing is known but whether it is the same of both orders."""
        key = tuple(sorted(arguments)) if kind.commutes else arguments
        atom = self._atom((kind.name, key))
        self._arguments[atom] = key
        return self._one((1, (atom,), ABSENT, ABSENT, ABSENT))

    def maximum(self, a: NF, b: NF) -> NF:
        """The larger of two."""
        return self._largest(self._members(a) | self._members(b))

    def amax(self, times: int, a: NF) -> NF:
        """The largest of `times` elements, or along an axis part that stands for the prime `times`."""
        return self._largest(frozenset((k * times, nf) for k, nf in self._members(a)))

    def exp(self, argument: NF) -> NF:
        return self._one((1, (), argument, ABSENT, ABSENT))

    def sqrt(self, argument: NF) -> NF:
        return self._one((1, (), ABSENT, argument, ABSENT))

    def add(self, a: NF, b: NF) -> NF:
        if not a or not b:
            return a or b
        key = ("+", a, b) if a <= b else ("+", b, a)
        found = self._binary.get(key)
        if found is None:
            found = self._binary[key] = self._nf([*self._nfs[a], *self._nfs[b]])
        return found

    def mul(self, a: NF, b: NF) -> NF:
        if not a or not b:
            return a or b
        key = ("*", a, b) if a <= b else ("*", b, a)
        found = self._binary.get(key)
        if found is None:
            pairs = [(self._tmul(t, u), n * m) for t, n in self._nfs[a] for u, m in self._nfs[b]]
            found = self._binary[key] = self._nf(pairs)
        return found

    def div(self, a: NF, b: NF) -> NF:
        key = ("/", a, b)
        found = self._binary.get(key)
        if found is None:
            pairs: list[tuple[int, int]] = []
            for t, n in self._nfs[a]:
                k, atoms, f, s, d = self._terms[t]
                pairs.append((self._term((k, atoms, f, s, self.mul(d, b))), n))
            found = self._binary[key] = self._nf(pairs)
        return found

    def sum(self, times: int, a: NF) -> NF:
        """sum(times, a): a reduction over `times` elements, or over an axis part that stands for the prime `times`."""
        if times == 1:
            return a
        key = ("sum", times, a)
        found = self._binary.get(key)
        if found is None:
            pairs: list[tuple[int, int]] = []
            for t, n in self._nfs[a]:
                k, atoms, f, s, d = self._terms[t]
                pairs.append((self._term((k * times, atoms, f, s, d)), n))
            found = self._binary[key] = self._nf(pairs)
        return found

    def numerator(self, a: NF) -> NF:
        """`a` with every denominator (also sqrt(x) / sqrt(y)'s) dropped: what linear operators can be moved over."""
        pairs: list[tuple[int, int]] = []
        for t, n in self._nfs[a]:
            k, atoms, f, s, _ = self._terms[t]
            pairs.append((self._term((k, atoms, f, s, ABSENT)), n))
        return self._nf(pairs)

    # ------------------------------------------------------------------ asking

    @property
    def size(self) -> int:
        """Terms and normal forms it holds."""
        return len(self._terms) + len(self._nfs)

    def has_exp(self, a: NF) -> bool:
        """Is there an exponential in it, at any depth?"""
        found = self._exps.get(a)
        if found is None:
            under = any(self._terms[t][2] for t, _ in self._nfs[a])
            found = self._exps[a] = under or any(self.has_exp(inner) for inner in self._inner(a))
        return found

    def within(self, e: NF) -> list[NF]:
        """`e` and the normal forms inside of it, at any depth, each once."""
        found = [e]
        for nf in found:
            found += [inner for inner in self._inner(nf) if inner not in found]
        return found

    def terms_of(self, a: NF) -> list[int]:
        """Its distinct terms."""
        return [term for term, _ in self._nfs[a]]

    def parts_of(self, a: NF) -> list[Parts]:
        """Its distinct terms, taken apart."""
        found: list[Parts] = []
        for t, _ in self._nfs[a]:
            k, atoms, f, s, d = self._terms[t]
            functions = tuple(atom for atom in atoms if atom in self._arguments)
            leaves = tuple(atom for atom in atoms if atom not in self._arguments)
            arguments = tuple(nf for atom in functions for nf in self._arguments[atom])
            # The larger of two joins them, as any function of two: it is no operator on one expression.
            alone = tuple(atom for atom in functions if len(self._maxima.get(atom, self._arguments[atom])) < 2)
            found.append(Parts(k, leaves, alone, arguments, f, s, d))
        return found

    def text(self, a: NF) -> str:
        """For people: the sum of terms, inputs by name."""
        names = {number: key for key, number in self._atoms.items()}

        def atom(number: int) -> str:
            fn, name = names[number]
            members = self._maxima.get(number)
            if members is not None:
                shown = (f"max{k}·({self.text(nf)})" if k > 1 else self.text(nf) for k, nf in sorted(members))
                return f"max({', '.join(shown)})"
            arguments = self._arguments.get(number)
            return str(name) if arguments is None else f"{fn}({', '.join(map(self.text, arguments))})"

        parts: list[str] = []
        for t, n in self._nfs[a]:
            k, atoms, f, s, d = self._terms[t]
            factors = [str(n)] * (n > 1) + [f"Σ{k}"] * (k > 1) + [atom(x) for x in atoms]
            factors += [f"exp({self.text(f)})"] * bool(f) + [f"sqrt({self.text(s)})"] * bool(s)
            parts.append("·".join(factors) + (f" / ({self.text(d)})" if d else ""))
        return " + ".join(parts)

    # ------------------------------------------------------------------ maxima

    def _members(self, a: NF) -> Members:
        """Of a maximum that stands alone; any other expression is a maximum of itself."""
        pairs = self._nfs[a]
        if len(pairs) == 1 and pairs[0][1] == 1:
            k, atoms, f, s, d = self._terms[pairs[0][0]]
            if k == 1 and len(atoms) == 1 and not (f or s or d) and atoms[0] in self._maxima:
                return self._maxima[atoms[0]]
        return frozenset({(1, a)})

    def _largest(self, members: Members) -> NF:
        if len(members) == 1:
            ((k, nf),) = members
            if k == 1:
                return nf
        atom = self._atom(("max", members))
        self._maxima[atom] = members
        self._arguments[atom] = tuple(sorted({nf for _, nf in members}))
        return self._one((1, (atom,), ABSENT, ABSENT, ABSENT))

    # ------------------------------------------------------------------ hash-consing

    def _atom(self, key: tuple[str, Hashable]) -> int:
        return self._atoms.setdefault(key, len(self._atoms) + 1)

    def _term(self, term: Term) -> int:
        found = self._term_ids.get(term)
        if found is None:
            found = self._term_ids[term] = len(self._terms)
            self._terms.append(term)
        return found

    def _one(self, term: Term) -> NF:
        return self._nf([(self._term(term), 1)])

    def _nf(self, pairs: Iterable[tuple[int, int]]) -> NF:
        counts: dict[int, int] = {}
        for term, count in pairs:
            counts[term] = counts.get(term, 0) + count
        key = tuple(sorted(counts.items()))
        found = self._nf_ids.get(key)
        if found is None:
            found = self._nf_ids[key] = len(self._nfs)
            self._nfs.append(key)
        return found

    def _tmul(self, t: int, u: int) -> int:
        key = (".", t, u) if t <= u else (".", u, t)
        found = self._binary.get(key)
        if found is None:
            k, atoms, f, s, d = self._terms[t]
            k2, atoms2, f2, s2, d2 = self._terms[u]
            product = (k * k2, tuple(sorted(atoms + atoms2)), self.add(f, f2), self.mul(s, s2), self.mul(d, d2))
            found = self._binary[key] = self._term(product)
        return found

    def _inner(self, e: NF) -> tuple[NF, ...]:
        """Normal forms one level down: under exp, sqrt, the denominator, unary functions; each once."""
        known = self._inners.get(e)
        if known is None:
            inner: list[NF] = []
            for t, _ in self._nfs[e]:
                _, atoms, f, s, d = self._terms[t]
                inner += [part for part in (f, s, d) if part]
                inner += [nf for atom in atoms for nf in self._arguments.get(atom, ())]
            known = self._inners[e] = tuple(dict.fromkeys(inner))
        return known
