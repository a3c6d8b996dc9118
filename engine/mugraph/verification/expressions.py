"""Exact expressions of real numbers in a normal form, and the laws that bring them there: what a proof is made of.

An expression is a fraction of polynomials over the rationals (polynomials.py) in *atoms*. An atom is an input element,
the root of a prime, pi, ln 2, or a function of other expressions. One atom stands for one number: equal arguments are
found to be equal by multiplying out, not by their numbers.

Laws that are used, each of which holds for all real numbers at which both of its sides are defined:

    a + b = b + a, a (b + c) = a b + a c, a / b = (a c) / (b c), ...        the field of fractions
    sqrt(p)^2 = p  for a prime p in a constant
    sqrt(a b) = sqrt(a) sqrt(b), sqrt(exp(a)) = exp(a / 2)
    exp(a + b) = exp(a) exp(b), exp(c a) = exp(a)^c, log(exp(a)) = a      c rational
    max(a, b) = b + r(a - b),  r(d) = max(d, 0)
    r(d) = d + r(-d), r(c d) = c r(d), r(d) = d where d cannot be negative, r(d) = 0 where -d cannot be
    max is associative, commutative, idempotent; max(c a, c b, ...) = c max(a, b, ...)          c positive
    erf(-a) = -erf(a)
    where(0, a) = 0, where(c, a) = a                                      c a rational other than 0

sqrt(a)^2 = a and sqrt(a^2) = |a| are not among them. With sqrt(|a|) for every sqrt(a) all of these laws hold wherever
nothing is divided by 0, and where no argument is negative that is the same: so no step of a proof is through numbers
that one of its two sides does not have.

Of any other function only that equal arguments give equal results. The laws are not complete (max(a + b, a + c, a + d)
is not a + max(b, c, d) here): what they do not show may still be so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from mugraph.verification.constants import Constant
from mugraph.verification.polynomials import (
    ONE,
    ZERO,
    Monomial,
    Polynomial,
    Power,
    Unproved,
    Work,
    as_power,
    atom,
    common,
    content,
    half,
    joined,
    leading,
    number,
    plus,
    raised,
    scaled,
)
from mugraph.verification.primes import P, Q

Divisors = tuple[tuple[int, int], ...]
"""(factor, power), sorted by factor."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """above: the numerator. divisors: of the denominator"""

    above: Polynomial
    divisors: Divisors = ()


@dataclass(frozen=True, slots=True)
class _Factor:
    """Of a denominator: a polynomial of several terms, without a common factor, its first coefficient positive."""

    polynomial: Polynomial
    is_positive: bool


class Expressions:
    """One table of atoms and factors, for expressions that are compared with each other."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._random = Random(0)  # for finding equal expressions fast: what is said never depends on it
        self._values: list[int] = []  # of each atom, modulo P; an exponential has its logarithm to _BASE, modulo Q
        self._roots: dict[int, int] = {}  # atom that is the root of a prime -> the prime
        self._powers: dict[int, Expression] = {}  # atom that is an exponential -> of what
        self._positive: set[int] = set()  # atoms that are never negative
        self._atoms: dict[object, int] = {}
        self._factors: list[_Factor] = []
        self._factor_numbers: dict[frozenset[tuple[Monomial, Fraction]], int] = {}
        self._classes: list[Expression] = []
        self._by_polynomial: dict[frozenset[tuple[Monomial, Fraction]], int] = {}
        self._by_value: dict[int | None, list[int]] = {}
        self._maxima: dict[int, frozenset[int]] = {}  # class of a maximum -> the classes of what it is the maximum of

    # What there is.

    def variable(self) -> Expression:
        """A number of which nothing is known."""
        return Expression(atom(self._new()))

    def number(self, value: Fraction) -> Expression:
        return Expression(number(value))

    def constant(self, constant: Constant) -> Expression:
        found = self.number(Fraction(constant.sign))
        for base, halves in constant.halves:
            if isinstance(base, int) and halves % 2 == 0:
                found = Expression(scaled(found.above, Fraction(base) ** (halves // 2)), found.divisors)
                continue
            which = self._named(("root of", base))
            self._positive.add(which)
            if isinstance(base, int):
                self._roots[which] = base
                if pow(base, (P - 1) // 2, P) == 1:
                    self._values[which] = pow(base, (P + 1) // 4, P)
            found = self.mul(found, self._power(which, halves))
        return found

    def opaque(self, name: str, *of: Expression, commutes: bool = False) -> Expression:
        """A function of which nothing is known."""
        classes = [self.class_of(one) for one in of]
        return Expression(atom(self._named((name, *(sorted(classes) if commutes else classes)))))

    # Arithmetic.

    def add(self, a: Expression, b: Expression) -> Expression:
        if not a.above or not b.above:
            return a if a.above else b
        self._work.spend(1 + min(len(a.above), len(b.above)))
        if a.divisors == b.divisors:
            return self._made(plus(a.above, b.above), a.divisors)
        every = Counter(dict(a.divisors)) | Counter(dict(b.divisors))
        left = self._times(a.above, every - Counter(dict(a.divisors)))
        right = self._times(b.above, every - Counter(dict(b.divisors)))
        return self._made(plus(left, right), _sorted(every))

    def mul(self, a: Expression, b: Expression) -> Expression:
        if not a.above or not b.above:
            return Expression(ZERO)
        divisors = a.divisors or b.divisors
        if a.divisors and b.divisors:
            divisors = _sorted(Counter(dict(a.divisors)) + Counter(dict(b.divisors)))
        return self._made(self._product(a.above, b.above), divisors)

    def total(self, of: Sequence[Expression]) -> Expression:
        """The sum of one or more."""
        found = of[0]
        for one in of[1:]:
            found = self.add(found, one)
        return found

    def negative(self, a: Expression) -> Expression:
        return Expression(scaled(a.above, Fraction(-1)), a.divisors)

    def inverse(self, a: Expression) -> Expression:
        if not a.above:
            raise Unproved("it divides by what is always 0")
        above = self._times(ONE, Counter(dict(a.divisors)))
        if len(a.above) == 1:
            ((monomial, coefficient),) = a.above.items()
            return Expression(self._product(above, {raised(monomial, -1): 1 / coefficient}))
        size, shared, rest = self._split(a.above)
        inverted = {raised(shared, -1): 1 / size}
        return self._made(self._product(above, inverted), ((self._factor(rest), 1),))

    def sqrt(self, a: Expression) -> Expression:
        if not a.above:
            return a
        size, shared, rest = self._split(a.above)
        if size < 0:
            rest = scaled(rest, Fraction(-1))
        found = self._root(abs(size))
        for which, power in shared:
            if which in self._powers:
                found = self.mul(found, Expression({((which, half(power)),): Fraction(1)}))
            else:
                found = self.mul(found, self._root_of(atom(which), power))
        if rest != ONE:
            found = self.mul(found, self._root_of(rest, 1))
        for which, power in a.divisors:
            found = self.mul(found, self._root_of(self._factors[which].polynomial, -power))
        return found

    def _root_of(self, a: Polynomial, power: Power) -> Expression:
        """The root, an atom, to this power."""
        which = self._named(("sqrt", self.class_of(Expression(a))))
        self._positive.add(which)
        return Expression(atom(which, power))

    def exp(self, a: Expression) -> Expression:
        found: Monomial = ()
        for monomial, coefficient in a.above.items():
            which = self._named(("exp", monomial, a.divisors))
            if which not in self._powers:
                self._powers[which] = Expression({monomial: Fraction(1)}, a.divisors)
                self._positive.add(which)
                self._values[which] %= Q
            found = joined(found, ((which, as_power(coefficient)),))
        return Expression({found: Fraction(1)})

    def log(self, a: Expression) -> Expression:
        if len(a.above) == 1 and not a.divisors:
            ((monomial, coefficient),) = a.above.items()
            if coefficient == 1 and all(which in self._powers for which, _ in monomial):
                total = Expression(ZERO)
                for which, power in monomial:
                    total = self.add(total, self.mul(self.number(Fraction(power)), self._powers[which]))
                return total
        return self.opaque("log", a)

    def erf(self, a: Expression) -> Expression:
        if not a.above:
            return a
        if leading(a.above) < 0:
            return self.negative(self.erf(self.negative(a)))
        return self.opaque("erf", a)

    def where(self, condition: Expression, a: Expression) -> Expression:
        if not condition.above:
            return Expression(ZERO)
        if _is_number(condition):
            return a
        return self.opaque("where", condition, a)

    # Maxima.

    def maximum(self, of: Iterable[Expression]) -> Expression:
        """The largest of one or more."""
        members: set[int] = set()
        for one in of:
            which = self.class_of(one)
            members |= self._maxima.get(which, {which})
        numbers = [which for which in members if _is_number(self._classes[which])]
        known = {self._classes[which].above.get((), Fraction(0)): which for which in numbers}
        if known:
            members -= {which for value, which in known.items() if value < max(known)}
        ordered = [self._classes[which] for which in sorted(members)]
        found = ordered[0]
        if len(ordered) == 2:
            found = self.add(ordered[1], self._positive_part(self.add(ordered[0], self.negative(ordered[1]))))
        elif len(ordered) > 2:
            found = self._largest(ordered)
        if (which := self.class_of(found)) not in members:
            self._maxima[which] = frozenset(members)
        return found

    def _largest(self, of: Sequence[Expression]) -> Expression:
        size = Fraction(1) if any(one.divisors for one in of) else content(*(one.above for one in of))
        classes = frozenset(self.class_of(Expression(scaled(one.above, 1 / size), one.divisors)) for one in of)
        which = self._named(("max", classes))
        if any(self._is_never_negative(one) for one in of):
            self._positive.add(which)
        return Expression(scaled(atom(which), size))

    def _positive_part(self, a: Expression) -> Expression:
        if self._is_never_negative(a):
            return a
        if self._is_never_negative(self.negative(a)):
            return Expression(ZERO)
        size, shared, rest = self._split(a.above)
        outer = tuple((which, power) for which, power in shared if which in self._powers)
        inner = tuple((which, power) for which, power in shared if which not in self._powers)
        rest = {joined(monomial, inner): coefficient for monomial, coefficient in rest.items()}
        pulled = tuple(one for one in a.divisors if self._factors[one[0]].is_positive)
        kept = tuple(one for one in a.divisors if one not in pulled)
        is_first_positive = leading(rest) > 0
        first = Expression(rest if is_first_positive else scaled(rest, Fraction(-1)), kept)
        which = self._named(("positive part", self.class_of(first)))
        self._positive.add(which)
        found = self.mul(Expression({outer: abs(size)}, pulled), Expression(atom(which)))
        # That is of |size| outer / pulled * first, which is `a` or -a.
        return found if (size > 0) == is_first_positive else self.add(a, found)

    # Comparison.

    def equal(self, a: Expression, b: Expression) -> bool:
        if a.divisors == b.divisors:
            return a.above == b.above
        return not self.add(a, self.negative(b)).above

    def class_of(self, a: Expression) -> int:
        """A number that equal expressions share."""
        if not a.divisors:
            key = frozenset(a.above.items())
            found = self._by_polynomial.get(key)
            if found is None:
                found = self._by_polynomial[key] = self._classed(a)
            return found
        return self._classed(a)

    def _classed(self, a: Expression) -> int:
        alike = self._by_value.setdefault(self._value(a), [])
        for which in alike:
            if self.equal(self._classes[which], a):
                return which
        self._classes.append(a)
        alike.append(len(self._classes) - 1)
        return alike[-1]

    def _value(self, a: Expression) -> int | None:
        """At random numbers modulo P. None where it is not defined there."""
        below = 1
        for which, power in a.divisors:
            below = below * pow(self._polynomial_value(self._factors[which].polynomial), power, P) % P
        return self._polynomial_value(a.above) * pow(below, P - 2, P) % P if below else None

    def _polynomial_value(self, a: Polynomial) -> int:
        total = 0
        for monomial, coefficient in a.items():
            term = coefficient.numerator * pow(coefficient.denominator, P - 2, P)
            for which, power in monomial:
                if which in self._powers:
                    exponent = power.numerator * pow(power.denominator, Q - 2, Q) * self._values[which] % Q
                    term = term * pow(_BASE, exponent, P) % P
                else:
                    term = term * pow(self._values[which], power.numerator % (P - 1), P) % P
            total += term
        return total % P

    # Within.

    def _new(self) -> int:
        self._values.append(self._random.randrange(1, P))
        return len(self._values) - 1

    def _named(self, key: object) -> int:
        """The atom that stands for this."""
        found = self._atoms.get(key)
        if found is None:
            found = self._atoms[key] = self._new()
        return found

    def _power(self, which: int, power: int) -> Expression:
        return Expression(dict([self._reduced(((which, power),), Fraction(1))]))

    def _root(self, of: Fraction) -> Expression:
        """Of a positive rational."""
        rest = of.numerator * of.denominator
        outside, divisor = 1, 2
        bases: list[int] = []
        while divisor * divisor <= rest and divisor < _TRIED:
            while rest % (divisor * divisor) == 0:
                rest //= divisor * divisor
                outside *= divisor
            if rest % divisor == 0:
                rest //= divisor
                bases.append(divisor)
            divisor += 1
        found = self.number(Fraction(outside, of.denominator))
        for base in (*bases, rest):
            if base > 1:
                found = self.mul(found, self.constant(Constant(1, ((base, 1),))))
        return found

    def _reduced(self, monomial: Monomial, coefficient: Fraction) -> tuple[Monomial, Fraction]:
        """Without squares of roots."""
        if self._roots and any(which in self._roots and power not in (0, 1) for which, power in monomial):
            kept: list[tuple[int, Power]] = []
            for which, power in monomial:
                if which in self._roots:
                    whole = power.numerator
                    coefficient *= Fraction(self._roots[which]) ** (whole // 2)
                    power = whole % 2
                if power:
                    kept.append((which, power))
            monomial = tuple(kept)
        return monomial, coefficient

    def _product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        self._work.spend(len(a) * len(b))
        total: dict[Monomial, Fraction] = {}
        for left, one in a.items():
            for right, other in b.items():
                monomial, coefficient = self._reduced(joined(left, right), one * other)
                found = total.get(monomial)
                total[monomial] = coefficient if found is None else found + coefficient
        if not all(total.values()):
            total = {monomial: coefficient for monomial, coefficient in total.items() if coefficient}
        return self._work.kept(total)

    def _times(self, above: Polynomial, factors: Counter[int]) -> Polynomial:
        for which, power in factors.items():
            for _ in range(power):
                above = self._product(above, self._factors[which].polynomial)
        return above

    def _split(self, a: Polynomial) -> tuple[Fraction, Monomial, Polynomial]:
        """a = number times monomial times polynomial, the polynomial's first coefficient positive. a is not 0"""
        shared, size = common(a), content(a)
        if leading({joined(monomial, raised(shared, -1)): c for monomial, c in a.items()}) < 0:
            size = -size
        rest: dict[Monomial, Fraction] = {}
        for monomial, coefficient in a.items():
            rest[joined(monomial, raised(shared, -1))] = coefficient / size
        return size, shared, rest

    def _factor(self, polynomial: Polynomial) -> int:
        key = frozenset(polynomial.items())
        found = self._factor_numbers.get(key)
        if found is None:
            found = self._factor_numbers[key] = len(self._factors)
            self._factors.append(_Factor(polynomial, self._is_never_negative(Expression(polynomial))))
        return found

    def _made(self, above: Polynomial, divisors: Divisors) -> Expression:
        """The fraction, without a factor that is all of its numerator but a monomial."""
        if not above:
            return Expression(ZERO)
        alike = [one for one, _ in divisors if len(self._factors[one].polynomial) == len(above)]
        if alike and len(above) > 1:
            size, shared, rest = self._split(above)
            which = next((one for one in alike if self._factors[one].polynomial == rest), None)
            if which is not None:
                left = Counter(dict(divisors))
                left[which] -= 1
                return Expression({shared: size}, _sorted(+left))
        return Expression(self._work.kept(above), divisors)

    def _is_never_negative(self, a: Expression) -> bool:
        """Whether that is plain to see: every term is a positive number times squares and positive atoms."""
        if any(not self._factors[which].is_positive and power % 2 for which, power in a.divisors):
            return False
        return all(
            coefficient > 0
            and all(
                which in self._positive or (power.denominator == 1 and power.numerator % 2 == 0)
                for which, power in monomial
            )
            for monomial, coefficient in a.above.items()
        )


_BASE = 4
"""Of the values of exponentials: its powers modulo P are Q different numbers."""
_TRIED = 1 << 12


def _is_number(a: Expression) -> bool:
    """A rational one."""
    return not a.divisors and all(not monomial for monomial in a.above)


def _sorted(factors: Counter[int]) -> Divisors:
    return tuple(sorted(factors.items()))
