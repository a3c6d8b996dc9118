"""Sizes that are known at run time only: ranges declared in a shape comment (`b=1..8, t=1..64`), and products of them.

Everything that varies in a region is a whole number times a product of its sizes, and of sums of them. What is
traced, searched and timed has the largest size of each range, so a `size` elsewhere in the engine is the most there
can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from mugraph.ir.calls import Call
from mugraph.ir.sums import Sum, sum_of

_DEGREE = 3
"""Sizes that are multiplied with each other, at most: a tensor's stride may be `b * t * t`."""

Point = Mapping[str, int]
"""A size of each range, by name."""


@dataclass(frozen=True, slots=True)
class SizeRange:
    """A named size from `least` to `largest`, both included; 1 <= least < largest.

    of_data: where it arises, if no comment declares it: "as many as torch.where in line 43 selects"
    up_to:   of such a size the most that it can be, where a run has to be traced with less
    """

    name: str
    least: int
    largest: int
    of_data: str = ""
    up_to: int = 0

    def __str__(self) -> str:
        return f"{self.name} = {self.least}..{self.largest}"

    @property
    def whole(self) -> SizeRange:
        """The range with all that its size can be."""
        return replace(self, largest=max(self.largest, self.up_to), up_to=0)

    @property
    def middle(self) -> int:
        """A size between the ends that divides into nothing by chance: a prime where there is one."""
        inner = range((self.least + self.largest) // 2, self.least, -1)
        return next((n for n in inner if _is_prime(n)), max(self.least, self.largest - 1))

    @property
    def samples(self) -> tuple[int, ...]:
        """Sizes below the largest at which a claim about all of them is checked: a ragged one, and the least."""
        return tuple(dict.fromkeys((self.middle, self.least)))

    def words(self, spans: Sequence[tuple[int, int]]) -> str:
        """Some of its sizes, each span with both its ends: "b = 1..64", "b up to 16", "b from 8", "b = 4..8"."""
        return " and ".join(self._span(*span) for span in spans)

    def _span(self, first: int, last: int) -> str:
        if first == last:
            return f"{self.name} = {first}"
        if first == self.least and last < self.largest:
            return f"{self.name} up to {last}"
        if last == self.largest and first > self.least:
            return f"{self.name} from {first}"
        return f"{self.name} = {first}..{last}"


@dataclass(frozen=True, slots=True)
class Product:
    """factor times the sizes of these names, sorted, and times sums of sizes; a name may occur twice. Without either it
    is what does not vary."""

    factor: int = 0
    names: tuple[str, ...] = ()
    sums: tuple[Sum, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names or self.sums)

    @property
    def sizes(self) -> frozenset[str]:
        """The names of all sizes that it depends on."""
        return frozenset((*self.names, *(name for one in self.sums for name in one.names)))

    def at(self, point: Point) -> int:
        return self.factor * prod(point[name] for name in self.names) * prod(one.at(point) for one in self.sums)

    def ends(self, ranges: Sequence[SizeRange]) -> tuple[int, int]:
        """The least and the largest that it is."""
        return self.at({one.name: one.least for one in ranges}), self.at({one.name: one.largest for one in ranges})

    def text(self, called: Mapping[str, str], *, inner: bool = False) -> str:
        """called: the sizes' variables. inner: in brackets, to stand in any expression"""
        terms = [*([str(self.factor)] if self.factor != 1 else []), *(called[name] for name in self.names)]
        alone = not terms and len(self.sums) == 1
        terms += [one.text(called) if alone else f"({one.text(called)})" for one in self.sums]
        found = " * ".join(terms)
        return f"({found})" if inner and " " in found else found


FIXED = Product()


def product_of(values: Sequence[int], points: Sequence[Point]) -> Product | None:
    """The product that has these values at these points: FIXED where all are equal, None where there is none."""
    if len({*values}) == 1:
        return FIXED
    names = sorted(points[0])
    powers = (p for p in product(range(_DEGREE), repeat=len(names)) if 0 < sum(p) <= _DEGREE)
    for power in sorted(powers, key=sum):
        sizes = [prod(point[name] ** n for name, n in zip(names, power, strict=True)) for point in points]
        factor = values[0] // sizes[0]
        if factor and all(value == factor * size for value, size in zip(values, sizes, strict=True)):
            return Product(factor, _repeated(names, power))
    return _with_sum(values, points, names)


def _with_sum(values: Sequence[int], points: Sequence[Point], names: Sequence[str]) -> Product | None:
    """A product of sizes and one sum of sizes."""
    powers = (p for p in product(range(_DEGREE), repeat=len(names)) if sum(p) < _DEGREE)
    for power in sorted(powers, key=sum):
        sizes = [prod(point[name] ** n for name, n in zip(names, power, strict=True)) for point in points]
        if any(value % size for value, size in zip(values, sizes, strict=True)):
            continue
        found = sum_of([value // size for value, size in zip(values, sizes, strict=True)], points)
        if found is not None:
            return Product(found[0], _repeated(names, power), (found[1],))
    return None


def _repeated(names: Sequence[str], power: Sequence[int]) -> tuple[str, ...]:
    return tuple(name for name, n in zip(names, power, strict=True) for _ in range(n))


@dataclass(frozen=True)
class DynamicSize:
    """What of a region varies with its sizes.

    range:           of the size that matters most, by which schedules are chosen and times are taken
    others:          ranges of further sizes
    shapes, strides: value number -> what each dimension is a product of; values of which nothing varies are left out
    calls:           the region's calls, with `multiple(...)` where an argument varies
    numbers:         whole numbers that the region reads, by the expressions that read them, with what each is
    arguments:       whole numbers among the arguments of the region's function, with what each is where it is called
    recorded:        all of its arguments at the largest sizes, as a recording writes them, where they are recorded ones
    """

    range: SizeRange
    shapes: Mapping[int, tuple[Product, ...]] = field(default_factory=dict[int, tuple[Product, ...]])
    strides: Mapping[int, tuple[Product, ...]] = field(default_factory=dict[int, tuple[Product, ...]])
    calls: tuple[Call, ...] = ()
    others: tuple[SizeRange, ...] = ()
    numbers: Mapping[str, Product] = field(default_factory=dict[str, Product])
    arguments: Mapping[str, Product] = field(default_factory=dict[str, Product])
    recorded: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def ranges(self) -> tuple[SizeRange, ...]:
        return (self.range, *self.others)

    @property
    def words(self) -> str:
        """ "b = 1..8, t = 1..64", in the order of the names. What no comment declares is said to come of data."""
        every = sorted(self.ranges, key=lambda one: one.name)
        return ", ".join(f"{one} ({one.of_data})" if one.of_data else str(one) for one in every)

    def point(self, size: int | Point) -> Point:
        """Where the first size is this one: the others are the largest."""
        return size if isinstance(size, Mapping) else {**largest_point(self.others), self.range.name: size}

    @property
    def points(self) -> tuple[Point, ...]:
        """Below the largest, where a claim about all sizes is checked: ragged sizes, the least, and each size that way
        while the others are the largest."""
        return tuple({one.name: take(one) for one in self.ranges} for take in takes(self.ranges))

    @property
    def corners(self) -> tuple[Point, ...]:
        """Of the sizes besides the first one: all the largest, and all the least."""
        least = {one.name: one.least for one in self.others}
        return (largest_point(self.others), least) if self.others else ({},)

    def joined(self, other: DynamicSize) -> DynamicSize:
        """This, extended by what varies of further values and by the calls that make them."""
        made = {call.outputs for call in other.calls}
        kept = (call for call in self.calls if call.outputs not in made)
        shapes, strides = {**self.shapes, **other.shapes}, {**self.strides, **other.strides}
        return replace(self, shapes=shapes, strides=strides, calls=(*kept, *other.calls))


Take = Callable[[SizeRange], int]
"""A size of each range."""


def takes(ranges: Sequence[SizeRange]) -> tuple[Take, ...]:
    """Sizes at which code is looked at beside the largest. Of several ranges each is also looked at by itself, so that
    what varies with one is not taken for what varies with another."""
    together: tuple[Take, ...] = (lambda one: one.samples[0], lambda one: one.samples[-1])
    alone = dict.fromkeys(one.name for one in ranges) if len({one.name for one in ranges}) > 1 else {}
    return (*together, *map(_alone, alone))


def _alone(name: str) -> Take:
    return lambda one: one.samples[0] if one.name == name else one.largest


def largest_point(ranges: Sequence[SizeRange]) -> Point:
    return {one.name: one.largest for one in ranges}


@dataclass(frozen=True)
class Compared:
    """Sizes that are compared with the largest ones: "b = 64" and "31", or "b = 31, t = 64" of several."""

    ranges: Sequence[SizeRange]
    point: Point

    @property
    def names(self) -> str:
        return " and ".join(one.name for one in self.ranges)

    @property
    def here(self) -> str:
        """ "b = 31"."""
        return ", ".join(f"{one.name} = {self.point[one.name]}" for one in self.ranges)

    @property
    def largest(self) -> str:
        return ", ".join(f"{one.name} = {one.largest}" for one in self.ranges)

    @property
    def here_briefly(self) -> str:
        """ "31", of several as `here`."""
        return str(self.point[self.ranges[0].name]) if len(self.ranges) == 1 else self.here

    @property
    def largest_briefly(self) -> str:
        return str(self.ranges[0].largest) if len(self.ranges) == 1 else self.largest


def leading(ranges: Sequence[SizeRange]) -> tuple[SizeRange, ...]:
    """The ranges, that with the most different sizes by ratio first."""
    return tuple(sorted(ranges, key=lambda one: -one.largest / one.least))


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of a tensor that lies row by row."""
    return tuple(prod(shape[at + 1 :]) for at in range(len(shape)))


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
