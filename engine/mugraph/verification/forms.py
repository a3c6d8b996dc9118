"""How many exponential terms a graph's outputs have, and of what degree: what Theorem 2 asks of a program.

An arithmetic whose elements are fractions in Theorem 2's form, sum of f_i exp(g_i) over a product of such sums, of
which only the exponents g_i and the degrees are kept. Exponents are told apart by their value modulo q at random
inputs; bound.py accounts for the chance that two different ones agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind
from mugraph.ops.functions.through_exp import form
from mugraph.verification.arithmetic import Index, Rearrange, assemble_arrays, running_totals
from mugraph.verification.constants import Base, read
from mugraph.verification.primes import Q, elements, random_powers

_MOST_TERMS = 512

Terms = frozenset[int]
"""The exponents that occur, as residues mod Q; {0} for a polynomial."""
_POLYNOMIAL: Terms = frozenset({0})
_NOTHING: Terms = frozenset()


NO_ROOTS = "sqrt is outside Theorem 2"


class Unbounded(Exception):
    """Theorem 2 does not cover the graph, or says nothing usable; the message says why."""


@dataclass(eq=False, slots=True)  # made and hashed by the million: neither frozen nor compared by its fields
class Factor:
    """A sum of exponential terms that something was divided by; one object is one factor, `number` its place."""

    number: int
    terms: Terms
    degree: int


@dataclass(eq=False, slots=True)
class Form:
    """Never changed. terms, degree: of the numerator. divisors: factors of the denominator. value: mod Q, None after
    an exp."""

    terms: Terms
    degree: int
    divisors: tuple[tuple[Factor, int], ...]
    value: int | None


Elements = NDArray[Any]  # of Form


class FormArithmetic:
    """argument_degree: the largest degree of a numerator or denominator of an exponent.
    atoms: arguments of opaque functions, (function, values); atom_degree: the largest degree of one, as one fraction.
    by_form: functions counted by their forms (ops/functions/through_exp.py)."""

    def __init__(self, rng: np.random.Generator, by_form: Collection[str] = frozenset()) -> None:
        self._key = rng.bytes(16)
        self._by_form = by_form
        self._numbers = count()
        self._factors: dict[int, Factor] = {}
        self._bases: dict[Base, Factor] = {}
        self._kept: list[Form] = []  # divided-by forms stay alive, so that their ids stay theirs
        self._one = Form(_POLYNOMIAL, 0, (), 1)
        self.argument_degree = 0
        self.atoms: set[tuple[str, tuple[int, ...]]] = set()
        self.atom_degree = 0

    def variables(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Elements:
        """[1, *shape] input elements with random values."""

        def variable(value: int) -> Form:
            return Form(_POLYNOMIAL, 1, (), int(value))

        return _each(variable, 1)(rng.integers(0, Q, (1, *shape), dtype=np.int64))

    def constant(self, value: float, rank: int) -> Elements:
        # As in the field (primes.py): what stands for itself is a number, anything else a random element.
        constant = read(value)
        (residue,) = elements(
            constant, Q, 1, lambda base: [1 + self._hash("constant", str(base).encode()) % (Q - 1)], signed=False
        )
        powers = random_powers(constant)
        divisors = Counter({self._base(base): -power for base, power in powers if power < 0})
        terms = _POLYNOMIAL if constant.sign else _NOTHING
        number = Form(terms, sum(max(0, power) for _, power in powers), _divisors(divisors), residue)
        return np.full((1,) * (rank + 1), number, object)

    def indicator(self, where: NDArray[np.bool_]) -> Elements:
        def element(one: bool) -> Form:
            return self._one if one else Form(_NOTHING, 0, (), 0)

        return _each(element, 1)(where)

    def whole(self, numbers: NDArray[np.int64]) -> Elements:
        def element(number: int) -> Form:
            return Form(_POLYNOMIAL if number else _NOTHING, 0, (), int(number) % Q)

        return _each(element, 1)(numbers)

    def add(self, a: Elements, b: Elements) -> Elements:
        return _each(self._add, 2)(a, b)

    def mul(self, a: Elements, b: Elements) -> Elements:
        return _each(self._mul, 2)(a, b)

    def div(self, a: Elements, b: Elements) -> Elements:
        return _each(self._mul, 2)(a, _each(self._reciprocal, 1)(b))

    def sqrt(self, a: Elements) -> Elements:
        raise Unbounded(NO_ROOTS)

    def exp(self, a: Elements) -> Elements:
        return _each(self._exp, 1)(a)

    def unary(self, fn: str, a: Elements) -> Elements:
        if fn in self._by_form:
            return form(fn, a, self, lambda value: self.constant(value, a.ndim - 1))

        def opaque(element: Form) -> Form:
            return self._opaque(fn, element)

        return _each(opaque, 1)(a)

    def opaque(self, kind: Kind, *operands: Elements) -> Elements:
        def opaque(*elements: Form) -> Form:
            return self._opaque(kind.name, *elements, commutes=kind.commutes)

        return _each(opaque, len(operands))(*operands)

    def maximum(self, a: Elements, b: Elements) -> Elements:
        raise Unbounded("a maximum is outside Theorem 2")

    def amax(self, a: Elements, over: tuple[int, ...]) -> Elements:
        raise Unbounded("a maximum is outside Theorem 2")

    def sum(self, a: Elements, over: tuple[int, ...]) -> Elements:
        total, add = a, np.frompyfunc(self._add, 2, 1)
        for position in over:
            total = cast(Elements, add.reduce(total, axis=position, keepdims=True))
        return total

    def dot(self, a: Elements, b: Elements, over: tuple[int, ...]) -> Elements:
        return self.sum(self.mul(a, b), over)

    def running(self, a: Elements, over: tuple[int, ...], backwards: bool) -> Elements:
        return running_totals(a, over, backwards, self.add)

    def shape(self, a: Elements) -> tuple[int, ...]:
        return a.shape

    def rearrange(self, a: Elements, how: Rearrange) -> Elements:
        def filled(element: Form | int) -> Form:
            # Padding writes the number 0 into arrays of objects.
            return element if isinstance(element, Form) else Form(_NOTHING, 0, (), 0)

        return _each(filled, 1)(how(a))

    def assemble(self, shape: tuple[int, ...], pieces: Sequence[tuple[Index, Elements]]) -> Elements:
        return assemble_arrays(shape, pieces, np.dtype(object))

    def _add(self, a: Form, b: Form) -> Form:
        if not a.terms or not b.terms:
            return b if not a.terms else a
        value = None if a.value is None or b.value is None else (a.value + b.value) % Q
        degree = a.degree if a.degree > b.degree else b.degree
        if a.divisors == b.divisors:
            terms = a.terms if a.terms is b.terms else _capped(a.terms | b.terms)
            return Form(terms, degree, a.divisors, value)
        common = Counter(dict(a.divisors)) | Counter(dict(b.divisors))
        left = _times(a, common - Counter(dict(a.divisors)))
        right = _times(b, common - Counter(dict(b.divisors)))
        return Form(_capped(left[0] | right[0]), max(left[1], right[1]), _divisors(common), value)

    def _mul(self, a: Form, b: Form) -> Form:
        value = None if a.value is None or b.value is None else a.value * b.value % Q
        divisors = a.divisors or b.divisors
        if a.divisors and b.divisors:
            divisors = _divisors(Counter(dict(a.divisors)) + Counter(dict(b.divisors)))
        # Most of what a program multiplies is polynomials: no look into the cache for those.
        terms = a.terms if b.terms is _POLYNOMIAL else b.terms if a.terms is _POLYNOMIAL else _product(a.terms, b.terms)
        return Form(terms, a.degree + b.degree, divisors, value)

    def _reciprocal(self, a: Form) -> Form:
        # One Form object is one value: dividing twice by it gives the same factor.
        factor = self._factors.get(id(a))
        if factor is None:
            factor = self._factors[id(a)] = Factor(next(self._numbers), a.terms, a.degree)
            self._kept.append(a)
        above = _times(self._one, Counter(dict(a.divisors)))
        value = None if a.value is None else pow(a.value, Q - 2, Q)
        return Form(above[0], above[1], ((factor, 1),), value)

    def _exp(self, a: Form) -> Form:
        if a.value is None:
            raise Unbounded("two exponentials on one path are outside Theorem 2")
        self.argument_degree = max(self.argument_degree, a.degree, _denominator(a)[1])
        return Form(frozenset({a.value}), 0, (), None)

    def _opaque(self, fn: str, *forms: Form, commutes: bool = False) -> Form:
        known = [a.value for a in forms if a.value is not None]
        if len(known) < len(forms):
            raise Unbounded(f"{fn} of an exponential is outside Theorem 2")
        values = tuple(sorted(known) if commutes else known)
        self.atoms.add((fn, values))
        self.atom_degree = max(self.atom_degree, *(a.degree + _denominator(a)[1] for a in forms))
        return Form(_POLYNOMIAL, 1, (), self._hash(fn, b"".join(value.to_bytes(8, "little") for value in values)))

    def _base(self, base: Base) -> Factor:
        """The random element that a constant is divided by."""
        if base not in self._bases:
            self._bases[base] = Factor(next(self._numbers), _POLYNOMIAL, 1)
        return self._bases[base]

    def _hash(self, name: str, argument: bytes) -> int:
        digest = blake2b(argument, key=self._key, person=name.encode()[:16], digest_size=8).digest()
        return int.from_bytes(digest, "little") % Q


def difference(reference: Mapping[str, Elements], other: Mapping[str, Elements]) -> tuple[int, int]:
    """(k, d) of the cross-multiplied difference of two graphs' outputs: the most terms and the highest degree of any
    element. Raises Unbounded."""
    most, degree = 1, 1
    for name, value in reference.items():
        for a, b in zip(_forms(value), _forms(other[name]), strict=True):
            left = _times(a, Counter(dict(b.divisors)))
            right = _times(b, Counter(dict(a.divisors)))
            most = max(most, len(left[0] | right[0]))
            degree = max(degree, left[1], right[1])
    return most, degree


def _forms(elements: Elements) -> list[Form]:
    return cast(list[Form], elements.reshape(-1).tolist())


def _each(function: Callable[..., Form], operands: int) -> Callable[..., Elements]:
    return cast(Callable[..., Elements], np.frompyfunc(function, operands, 1))


@lru_cache(1 << 13)
def _product(a: Terms, b: Terms) -> Terms:
    if len(a) == 1 and len(b) == 1 and 0 in a:
        return b
    return _capped(frozenset((x + y) % Q for x in a for y in b))


def _capped(terms: Terms) -> Terms:
    if len(terms) > _MOST_TERMS:
        raise Unbounded(f"an output has over {_MOST_TERMS} exponential terms at the tested sizes")
    return terms


def _times(form: Form, factors: Counter[Factor]) -> tuple[Terms, int]:
    """The numerator (terms, degree) multiplied by these factors."""
    terms, degree = form.terms, form.degree
    for factor, power in factors.items():
        for _ in range(power):
            terms = _product(terms, factor.terms)
        degree += power * factor.degree
    return terms, degree


def _denominator(form: Form) -> tuple[Terms, int]:
    return _times(Form(_POLYNOMIAL, 0, (), None), Counter(dict(form.divisors)))


def _divisors(factors: Counter[Factor]) -> tuple[tuple[Factor, int], ...]:
    return tuple(sorted(factors.items(), key=lambda item: item[0].number))
