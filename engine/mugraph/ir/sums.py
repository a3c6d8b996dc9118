"""Sums of sizes that are known at run time only: `t0 + 1` keys after one more is joined to t0 of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True, slots=True)
class Sum:
    """A number of times each of some sizes, and a number: `2 * t + t0 + 1`, `t - 1`.

    terms:  name -> how many times, at least once; sorted by name, not empty
    offset: may be negative; with the terms it has no common factor
    """

    terms: tuple[tuple[str, int], ...]
    offset: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    def at(self, point: Mapping[str, int]) -> int:
        return sum(times * point[name] for name, times in self.terms) + self.offset

    def text(self, called: Mapping[str, str]) -> str:
        """Without brackets. called: the sizes' variables"""
        found = " + ".join(called[name] if times == 1 else f"{times} * {called[name]}" for name, times in self.terms)
        if not self.offset:
            return found
        return f"{found} {'+' if self.offset > 0 else '-'} {abs(self.offset)}"

    def solved(self, name: str, total: str, called: Mapping[str, str]) -> str:
        """The size of this name as an expression. total: what the sum is; called: the other sizes' expressions"""
        times = dict(self.terms)
        others = [
            f" - {called[other]}" if n == 1 else f" - {n} * ({called[other]})"
            for other, n in self.terms
            if other != name
        ]
        if self.offset:
            others.append(f" {'-' if self.offset > 0 else '+'} {abs(self.offset)}")
        found = f"{total}{''.join(others)}"
        return found if times[name] == 1 else f"({found}) // {times[name]}"


def sum_of(values: Sequence[int], points: Sequence[Mapping[str, int]]) -> tuple[int, Sum] | None:
    """A factor and a sum, whose product has these values at these points; None where there is none.

    A sum with so many numbers to choose fits any few points. It is believed where one point more than those agrees.
    """
    first, *others = points
    times: dict[str, int] = {}
    for name in sorted(first):
        # Points that differ in nothing else say how many times the size counts.
        pairs = (
            (value - values[0], point[name] - first[name])
            for value, point in zip(values[1:], others, strict=True)
            if point[name] != first[name] and all(point[other] == first[other] for other in first if other != name)
        )
        change, by = next(pairs, (None, 1))
        if change is None or change % by:
            return None
        times[name] = change // by
    offset = values[0] - sum(n * first[name] for name, n in times.items())
    found = {name: n for name, n in times.items() if n}
    if not found or min(found.values()) < 0 or len({tuple(sorted(one.items())) for one in points}) < len(times) + 2:
        return None
    factor = gcd(offset, *found.values())
    made = Sum(tuple((name, n // factor) for name, n in found.items()), offset // factor)
    fits = all(factor * made.at(point) == value >= 1 for value, point in zip(values, points, strict=True))
    return (factor, made) if fits else None


def read(text: str) -> Sum:
    """A sum as `written` has it."""
    *terms, offset = text.split("|")
    pairs = (term.split(":") for term in terms)
    return Sum(tuple((name, int(times)) for name, times in pairs), int(offset))


def written(one: Sum) -> str:
    """ "t:2|t0:1|-1": a word without spaces, stars or brackets."""
    return "|".join([*(f"{name}:{times}" for name, times in one.terms), str(one.offset)])
