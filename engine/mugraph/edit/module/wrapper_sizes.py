"""Shapes, strides and calls of a region as text, where a size is known at run time only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mugraph.edit.module.operator import tuple_text
from mugraph.edit.names import parameter_name
from mugraph.ir.calls import Call
from mugraph.ir.kernel import Rejected
from mugraph.ir.memory_order import Order, in_order
from mugraph.ir.names import Scope
from mugraph.ir.ranges import Point, Product, SizeRange, largest_point
from mugraph.ir.region import Region
from mugraph.trace.regions.dynamic import Varies, owners, size_texts
from mugraph.units.ranged import calls_with


def numbers_read(region: Region) -> tuple[str, ...]:
    """Whole numbers of the user's code that say a size, as no tensor does. Raises Varies where nothing says one."""
    made = region.dynamic
    return tuple(one.number for one in owners(region, made).values() if one.live_in is None) if made is not None else ()


def numbers_at(region: Region, point: Point) -> list[int]:
    """What these are at a size of each range."""
    made = region.dynamic
    return [made.numbers[one].at(point) for one in numbers_read(region)] if made is not None else []


@dataclass(frozen=True)
class RunSizes:
    """The text for sizes in a region's functions.

    names: of the variables that hold the dynamic sizes, by size, in the order of `given`; none of a region without one
    given: the expressions that they are read from, over the parameters
    ranks: parameters that sizes are read from -> how many dimensions they have
    numbers: whole numbers that sizes are read from, by the expressions of the user's code -> their parameters
    """

    region: Region
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def of(region: Region, parameters: Mapping[int, str], scope: Scope) -> RunSizes:
        """parameters: live-in -> its name. Raises Rejected where no live-in has a size."""
        made = region.dynamic
        if made is None:
            return RunSizes(region)
        try:
            numbers = {one: scope.unique(parameter_name(one)) for one in numbers_read(region)}
            given = size_texts(region, made, parameters, numbers)
        except Varies as error:
            raise Rejected(f"{made.words}: {error}") from None
        names = {one.name: scope.unique(one.name) for one in made.ranges}
        first = [owner.live_in for owner in owners(region, made).values() if owner.live_in is not None]
        ranks = {parameters[live.value]: len(region.values[live.value].shape) for live in first}
        return RunSizes(region, names, {name: given[name] for name in names}, ranks, numbers)

    @property
    def parameters(self) -> list[str]:
        """Of the region's functions, after the tensors: whole numbers, of the largest sizes where none are given."""
        return [f"{name}: int = {number}" for name, number in zip(self.numbers.values(), self._largest, strict=True)]

    @property
    def _largest(self) -> list[int]:
        return numbers_at(self.region, largest_point(self.ranges))

    @property
    def ranges(self) -> tuple[SizeRange, ...]:
        return self.region.dynamic.ranges if self.region.dynamic is not None else ()

    @property
    def lines(self) -> list[str]:
        """That read the sizes."""
        return [f"{name} = {self.given[size]}" for size, name in self.names.items()]

    def shape(self, value: int, order: Order | None = None) -> str:
        """A value's shape as a tuple, its dimensions in an order."""
        info, made = self.region.values[value], self.region.dynamic
        dims = self._dims(info.shape, made.shapes.get(value) if made else None)
        return tuple_text(dims if order is None else in_order(order, dims))

    def strides(self, value: int) -> str:
        """A value's strides as a tuple."""
        info, made = self.region.values[value], self.region.dynamic
        return tuple_text(self._dims(info.strides, made.strides.get(value) if made else None))

    def stride(self, value: int, dimension: int) -> str:
        info, made = self.region.values[value], self.region.dynamic
        return str(self._dims(info.strides, made.strides.get(value) if made else None)[dimension])

    def calls(self, calls: Sequence[Call]) -> tuple[Call, ...]:
        """The region's calls, with the variables in place of numbers that vary with the sizes."""
        if self.region.dynamic is None:
            return tuple(calls)
        return calls_with(calls, self.region.dynamic, self.names)

    def read(self, lines: Sequence[str]) -> list[str]:
        """The lines; before them, lines that read the sizes that they use."""
        used = [name for name in self.names.values() if any(re.search(rf"\b{name}\b", line) for line in lines)]
        return [*(line for line in self.lines if line.partition(" = ")[0] in used), *lines]

    def faster(self, spans: Sequence[tuple[int, int]] | None) -> list[str]:
        """Lines of a condition: the size is in one of the spans. At other sizes the original code is as fast.

        torch.export wants one way for all the sizes it is told of; the kernel is right at each of them, so it is taken.
        """
        if spans is None:
            return []
        made = self.region.dynamic
        assert made is not None
        said = "the original code runs at other sizes, where it is as fast or faster"
        inside = [_within(self.names[made.range.name], span, made.range) for span in spans]
        return [f"# {said}", f"and ({' or '.join(['torch.compiler.is_exporting()', *inside])})"]

    def _dims(self, numbers: Sequence[int], products: Sequence[Product] | None) -> list[str]:
        if products is None:
            return [str(number) for number in numbers]
        pairs = zip(numbers, products, strict=True)
        return [of.text(self.names) if of else str(number) for number, of in pairs]


def _within(name: str, span: tuple[int, int], size: SizeRange) -> str:
    """The condition that a size of the range lies in the span."""
    first, last = span
    if first == last:
        return f"{name} == {first}"
    if first == size.least:
        return f"{name} <= {last}"
    return f"{name} >= {first}" if last == size.largest else f"{first} <= {name} <= {last}"
