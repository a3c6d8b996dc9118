"""Arguments of calls that depend on sizes which are known at run time only: whole numbers, as of `x[:, :t]`, and
numbers that are computed with, as in `x / t` and `scores * t ** -0.5`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from mugraph.ir.calls import Argument, Symbol
from mugraph.ir.ranges import Point, Product, product_of
from mugraph.ir.sums import read, written

_MULTIPLE = re.compile(r"size\*(\d+)((?:\*[A-Za-z_]\w*)*)((?:\*\[[^\]]+\])*)")
_NUMBER = re.compile(r"number\*([^*]+)\*([^*]+)\*(.*)", re.DOTALL)
_POWERS = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1.5, -1.5)
_ROUNDING = 1e-14
"""Of a number that code computes from a size, in a few steps, as part of it."""
_MOST = 2
"""Sizes that are multiplied with each other under a power."""


@dataclass(frozen=True, slots=True)
class SizedNumber:
    """factor times a power of a product of sizes, as `2 / (b * t)`. power: one of `_POWERS`"""

    factor: float
    of: Product
    power: float

    def at(self, point: Point) -> float:
        return self.factor * self.of.at(point) ** self.power

    def text(self, called: Mapping[str, str]) -> str:
        """called: the sizes' variables"""
        raised = self.of.text(called, inner=True)
        raised += f" ** {abs(self.power):g}" if abs(self.power) != 1.0 else ""
        return f"({self.factor!r} {'/' if self.power < 0 else '*'} {raised})"


def multiple(of: Product) -> Symbol:
    """An argument that is this product."""
    return Symbol("*".join(("size", str(of.factor), *of.names, *(f"[{written(one)}]" for one in of.sums))))


def product_in(symbol: Symbol) -> Product | None:
    """The product that a symbol stands for; None for another symbol."""
    found = _MULTIPLE.fullmatch(symbol.name)
    if found is None or not (found[2] or found[3]):
        return None
    sums = tuple(read(one.strip("[]")) for one in found[3].split("*")[1:])
    return Product(int(found[1]), tuple(found[2].split("*")[1:]), sums)


def sized(number: SizedNumber) -> Symbol:
    """An argument that is this number."""
    return Symbol(f"number*{number.factor!r}*{number.power!r}*{multiple(number.of).name}")


def sized_in(argument: Argument) -> SizedNumber | None:
    """The number that a symbol stands for, a product of sizes too; None for another argument."""
    if not isinstance(argument, Symbol):
        return None
    found = _NUMBER.fullmatch(argument.name)
    of = product_in(argument if found is None else Symbol(found[3]))
    if of is None:
        return None
    return SizedNumber(1.0, of, 1.0) if found is None else SizedNumber(float(found[1]), of, float(found[2]))


def sized_of(values: Sequence[float], points: Sequence[Point]) -> SizedNumber | None:
    """The number that has these values at these points, but for the rounding of how it was computed; None where there
    is none. Two points say nothing: any two values are some power of most things."""
    if len(points) < 3 or not all(values):
        return None
    names = sorted(points[0])
    some = [c for n in range(1, _MOST + 1) for c in combinations_with_replacement(names, n)]
    for power in _POWERS:
        raised = [abs(value) ** (1.0 / power) for value in values]
        whole = product_of([round(one) for one in raised], points) if max(raised) < 1 << 40 else None
        for of in (*([whole] if whole else []), *(Product(1, each) for each in some)):
            factors = [value / of.at(point) ** power for value, point in zip(values, points, strict=True)]
            factor = _short(factors[0])
            if all(abs(one - factor) <= _ROUNDING * abs(factor) for one in factors):
                return SizedNumber(factor, of, power)
    return None


def _short(number: float) -> float:
    """The number with fewer digits that it was rounded from, if there is one."""
    found = float(f"{number:.12g}")
    return found if abs(found - number) <= _ROUNDING * abs(number) else number


def with_sizes(argument: Argument, sizes: Point | None, called: Mapping[str, str] | None = None) -> Argument:
    """An argument with what depends on sizes as numbers, or as text where the sizes are variables, which are `called`
    so."""
    if isinstance(argument, Symbol):
        of, number = product_in(argument), sized_in(argument)
        found = of if of is not None else number
        if found is None:
            return argument
        if sizes is not None:
            return found.at(sizes)
        return Symbol(of.text(called or {}, inner=True) if of is not None else found.text(called or {}))
    if isinstance(argument, tuple):
        return tuple(with_sizes(item, sizes, called) for item in argument)
    if isinstance(argument, slice):
        parts: tuple[Argument, ...] = (argument.start, argument.stop, argument.step)
        return slice(*(with_sizes(part, sizes, called) for part in parts))
    return argument
