"""What a constant of a graph stands for: a product of powers of whole numbers, of pi and of ln 2.

A float is read as what it was most probably rounded from: 0.01 and 0.1 * 0.1 as 1/100, 0.08838834764831845 as the root
of 1/128, 1.5957691216057308 as 2 sqrt(2/pi). A number that is none of these is its own odd part times a power of two.

The reading differs from the float by a few units in its last place, as another order of roundings would. So it need not
be what the author meant. What counts is that a constant computed in two ways is read as one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isfinite, log, pi, sqrt

PI, LN_2 = "pi", "ln 2"
Base = int | str
"""A prime, a number without small factors, pi or ln 2."""

_EXACT_BITS = 24  # whole numbers times powers of two of so many bits are what they are
_DIGITS = 12  # a decimal fraction of at most so many digits is one
_SMALL = 1 << 30  # numerator times denominator, both odd, of other fractions
_LONG = 1 << 44  # the same, powers of two counted, of the fractions on the way to one
_NEAR = Fraction(1, 1 << 50)  # a few units in the last place
_FACTORS = 1 << 12  # what has no factor below this is left whole
_IRRATIONAL: tuple[tuple[float, tuple[tuple[Base, int], ...]], ...] = (
    (1.0, ()),
    (1 / sqrt(pi), ((PI, -1),)),
    (sqrt(pi), ((PI, 1),)),
    (1 / pi, ((PI, -2),)),
    (pi, ((PI, 2),)),
    (1 / log(2), ((LN_2, -2),)),
    (log(2), ((LN_2, 2),)),
)
"""Factors that a constant may have, and their halves as in Constant."""


@dataclass(frozen=True, slots=True)
class Constant:
    """sign: -1, 0 or 1. halves: of each base, twice its exponent (3 of 2 is 2 sqrt(2)); sorted, none is zero."""

    sign: int
    halves: tuple[tuple[Base, int], ...]


@lru_cache(maxsize=4096)
def read(value: float) -> Constant:
    """Raises ValueError for what is no number."""
    if not isfinite(value):
        raise ValueError(f"{value} is no number")
    if value == 0:
        return Constant(0, ())
    size = abs(value)
    halves = _product(size)
    if halves is None:
        halves = _irrational(size)
    if halves is None:
        halves = _halves(Fraction(size), whole=True)
    return Constant(1 if value > 0 else -1, _sorted(halves))


def _product(size: float) -> Counter[Base] | None:
    """As a fraction."""
    exact = Fraction(size)
    if _odd(exact.numerator).bit_length() <= _EXACT_BITS:
        return _halves(exact)
    found = _decimal(size) or _fraction(exact, _NEAR)
    return None if found is None else _halves(found)


def _irrational(size: float) -> Counter[Base] | None:
    """As a fraction, or the root of one, times a known factor."""
    for factor, halves in _IRRATIONAL:
        if not isfinite(size / factor):  # it is next to the largest number
            continue
        for root, more in ((1.0, ()), (sqrt(2), ((2, 1),))):
            found = None if factor == root == 1 else _rational(size / (factor * root))
            if found is not None:
                return _joined(_halves(found), dict((*halves, *more)))
        square = _fraction(Fraction(size / factor) ** 2, 2 * _NEAR)
        if square is not None:
            return _joined(Counter({base: n // 2 for base, n in _halves(square).items()}), dict(halves))
    return None


def _rational(size: float) -> Fraction | None:
    return _decimal(size) or _fraction(Fraction(size), _NEAR)


def _decimal(size: float) -> Fraction | None:
    said = Decimal(f"{size:.14e}").normalize()
    return Fraction(said) if len(said.as_tuple().digits) <= _DIGITS else None


def _fraction(exact: Fraction, near: Fraction) -> Fraction | None:
    """The simplest fraction, times a power of two, at most `near` (relative) away; None if that is no simple one."""
    power = exact.numerator.bit_length() - exact.denominator.bit_length()
    # In whole numbers: a Fraction finds a common divisor at every step.
    over, under = exact.numerator << max(-power, 0), exact.denominator << max(power, 0)  # between 1/2 and 2
    rest, divisor = over, under
    above, below, above_before, below_before = 1, 0, 0, 1
    while True:
        whole, left = divmod(rest, divisor)
        above, above_before = whole * above + above_before, above
        below, below_before = whole * below + below_before, below
        if above and abs(above * under - over * below) * near.denominator <= near.numerator * over * below:
            simple = _odd(above) * _odd(below) <= _SMALL
            return Fraction(above, below) * Fraction(2) ** power if simple else None
        if not left or above * below > _LONG:
            return None
        rest, divisor = divisor, left


def _halves(value: Fraction, *, whole: bool = False) -> Counter[Base]:
    """Twice the exponent of each base. whole: the odd part is one base"""
    found: Counter[Base] = Counter()
    for number, sign in ((value.numerator, 2), (value.denominator, -2)):
        odd = _odd(number)
        found[2] += sign * ((number // odd).bit_length() - 1)
        for base in (odd,) if whole else _factors(odd):
            if base > 1:
                found[base] += sign
    return found


def _factors(odd: int) -> list[int]:
    found: list[int] = []
    divisor = 3
    while divisor < _FACTORS and divisor * divisor <= odd:
        while odd % divisor == 0:
            found.append(divisor)
            odd //= divisor
        divisor += 2
    return [*found, odd]


def _odd(number: int) -> int:
    return number // (number & -number) if number else 1


def _joined(one: Counter[Base], other: dict[Base, int]) -> Counter[Base]:
    found = Counter(one)
    found.update(other)
    return found


def _sorted(halves: Counter[Base]) -> tuple[tuple[Base, int], ...]:
    return tuple(sorted(((base, n) for base, n in halves.items() if n), key=lambda item: str(item[0])))
