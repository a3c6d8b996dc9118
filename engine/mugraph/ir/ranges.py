"""Sizes that are known at run time only: a range declared in a shape comment (`b=1..64`), and multiples of such a size.

One size is in a region: everything that varies is a whole multiple of it. What is traced, searched and timed has the
largest size of the range, so a `size` elsewhere in the engine is the most there can be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from mugraph.ir.calls import Argument, Call, Symbol

_MULTIPLE = re.compile(r"size\*(\d+)")


@dataclass(frozen=True, slots=True)
class SizeRange:
    """A named size from `least` to `largest`, both included; 1 <= least < largest."""

    name: str
    least: int
    largest: int

    def __str__(self) -> str:
        return f"{self.name} = {self.least}..{self.largest}"

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


@dataclass(frozen=True)
class DynamicSize:
    """What of a region varies with a size.

    shapes, strides: value number -> for each dimension, how many times the size it is (0: it does not vary); values of
                     which nothing varies are left out
    calls:           the region's calls, with `multiple(n)` where an argument varies
    dense:           values without gaps at any size, which no code outside of the region sees: their strides follow
                     from their shapes, and may grow with the size's square
    """

    range: SizeRange
    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    strides: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    calls: tuple[Call, ...] = ()
    dense: frozenset[int] = frozenset()

    def joined(self, other: DynamicSize) -> DynamicSize:
        """This, extended by what varies of further values and by the calls that make them."""
        made = {call.outputs for call in other.calls}
        kept = (call for call in self.calls if call.outputs not in made)
        shapes, strides = {**self.shapes, **other.shapes}, {**self.strides, **other.strides}
        return DynamicSize(self.range, shapes, strides, (*kept, *other.calls), self.dense | other.dense)


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of a tensor that lies row by row."""
    return tuple(prod(shape[at + 1 :]) for at in range(len(shape)))


def multiple(factor: int) -> Symbol:
    """An argument that is `factor` times the size."""
    return Symbol(f"size*{factor}")


def factor_of(symbol: Symbol) -> int | None:
    """How many times the size a symbol stands for; None for another symbol."""
    found = _MULTIPLE.fullmatch(symbol.name)
    return int(found[1]) if found else None


def with_size(argument: Argument, size: int | str) -> Argument:
    """An argument with multiples of the size as numbers, or as text where `size` is the name of a variable."""
    if isinstance(argument, Symbol):
        factor = factor_of(argument)
        if factor is None:
            return argument
        return factor * size if isinstance(size, int) else Symbol(times(factor, size, inner=True))
    if isinstance(argument, tuple):
        return tuple(with_size(item, size) for item in argument)
    if isinstance(argument, slice):
        parts: tuple[Argument, ...] = (argument.start, argument.stop, argument.step)
        return slice(*(with_size(part, size) for part in parts))
    return argument


def times(factor: int, name: str, *, inner: bool = False) -> str:
    """Text of a multiple. inner: in brackets, to stand in any expression."""
    if factor == 1:
        return name
    return f"({factor} * {name})" if inner else f"{factor} * {name}"


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
