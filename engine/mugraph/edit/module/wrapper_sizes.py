"""Shapes, strides and calls of a region as text, where a size is known at run time only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mugraph.edit.module.operator import tuple_text
from mugraph.ir.calls import Call
from mugraph.ir.kernel import Rejected
from mugraph.ir.names import Scope
from mugraph.ir.ranges import SizeRange, times
from mugraph.ir.region import Region
from mugraph.trace.regions.dynamic import Varies, size_text
from mugraph.units.ranged import calls_at


@dataclass(frozen=True)
class RunSizes:
    """The text for sizes in a region's functions.

    name:  of the variable that holds the dynamic size; "" for a region without one
    given: the expression that the size is read from, over the parameters
    """

    region: Region
    name: str = ""
    given: str = ""

    @staticmethod
    def of(region: Region, parameters: Mapping[int, str], scope: Scope) -> RunSizes:
        """parameters: live-in -> its name. Raises Rejected where no live-in has the size."""
        if region.dynamic is None:
            return RunSizes(region)
        try:
            given = size_text(region, region.dynamic, parameters)
        except Varies as error:
            raise Rejected(f"{region.dynamic.range.name}: {error}") from None
        return RunSizes(region, scope.unique(region.dynamic.range.name), given)

    def shape(self, value: int) -> str:
        """A value's shape as a tuple."""
        info, made = self.region.values[value], self.region.dynamic
        return tuple_text(self._dims(info.shape, made.shapes.get(value) if made else None))

    def strides(self, value: int) -> str:
        """A value's strides as a tuple."""
        info, made = self.region.values[value], self.region.dynamic
        return tuple_text(self._dims(info.strides, made.strides.get(value) if made else None))

    def stride(self, value: int, dimension: int) -> str:
        info, made = self.region.values[value], self.region.dynamic
        return str(self._dims(info.strides, made.strides.get(value) if made else None)[dimension])

    def calls(self, calls: Sequence[Call]) -> tuple[Call, ...]:
        """The region's calls, with the variable in place of numbers that vary with the size."""
        if self.region.dynamic is None:
            return tuple(calls)
        return calls_at(calls, self.region.dynamic, self.name)

    def read(self, lines: Sequence[str]) -> list[str]:
        """The lines; if they use the size, a line before them reads it."""
        used = self.name and any(re.search(rf"\b{self.name}\b", line) for line in lines)
        return [f"{self.name} = {self.given}", *lines] if used else list(lines)

    def faster(self, spans: Sequence[tuple[int, int]] | None) -> list[str]:
        """Lines of a condition: the size is in one of the spans. At other sizes the original code is as fast.

        torch.export wants one way for all the sizes it is told of; the kernel is right at each of them, so it is taken.
        """
        if spans is None:
            return []
        made = self.region.dynamic
        assert made is not None
        said = "the original code runs at other sizes, where it is as fast or faster"
        inside = [_within(self.name, span, made.range) for span in spans]
        return [f"# {said}", f"and ({' or '.join(['torch.compiler.is_exporting()', *inside])})"]

    def owner(self) -> tuple[str, int]:
        """The parameter the size is read from, and how many dimensions it has."""
        made = self.region.dynamic
        assert made is not None
        first = next(live for live in self.region.live_ins if any(made.shapes.get(live.value, ())))
        return self.given.partition(".shape")[0], len(self.region.values[first.value].shape)

    def _dims(self, numbers: Sequence[int], factors: Sequence[int] | None) -> list[str]:
        if factors is None:
            return [str(number) for number in numbers]
        pairs = zip(numbers, factors, strict=True)
        return [times(factor, self.name) if factor else str(number) for number, factor in pairs]


def _within(name: str, span: tuple[int, int], size: SizeRange) -> str:
    """The condition that a size of the range lies in the span."""
    first, last = span
    if first == last:
        return f"{name} == {first}"
    if first == size.least:
        return f"{name} <= {last}"
    return f"{name} >= {first}" if last == size.largest else f"{first} <= {name} <= {last}"
