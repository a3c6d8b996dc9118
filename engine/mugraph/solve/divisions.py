"""Ways to divide a region among generated kernels and PyTorch's own, and which of them is the fastest by estimate.

The cut of a region takes as much into a search unit as one kernel may hold. PyTorch has a kernel of its own for some
calls that are several products at once (attention), and at some sizes no generated one is as fast. What is around such
a call may still gain: a norm and a rotation of the queries, in a kernel before it. So the region is also cut with these
calls left to PyTorch, and with its convolutions, and with its products of float8 matrices: PyTorch's kernels multiply
float8 numbers, twice as fast as the float16 ones that generated kernels make of them. And with its large products
(large_products.py): norms and rotations of a thousand rows are kernels between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from mugraph.events import UnitResult
from mugraph.ir.calls import Call, operands
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.solve.large_products import large_products
from mugraph.solve.pytorch import kept_us, pytorch_us
from mugraph.targets import Target
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.units.layouts import plain_calls_of


@dataclass(frozen=True)
class Division:
    """region: with what is known of the values that only its parts make. results: of the search units among `parts`"""

    region: Region
    parts: list[Part]
    results: list[UnitResult]

    def us(self, target: Target) -> float | None:
        """Kernels where they pay, as measured where they were, and PyTorch's calls by estimate. None where nothing is
        known of what those take."""
        return self._us(self.parts, target)

    @property
    def parts_made(self) -> frozenset[tuple[bool, frozenset[int]]]:
        """Of each part, whether it is a search unit, and what it computes."""
        return frozenset((isinstance(part, SearchUnit), _made(part)) for part in self.parts)

    def has(self, unit: SearchUnit) -> bool:
        """Is one of its parts a search unit of the same calls?"""
        made = _made(unit)
        return any(isinstance(part, SearchUnit) and _made(part) == made for part in self.parts)

    def us_around(self, unit: SearchUnit, target: Target) -> float:
        """Estimated, of the parts that compute something of what the unit computes; infinite where it is not known."""
        return self._us_of(_made(unit), target)

    def _computed(self, part: Part) -> frozenset[int]:
        """What the part makes; of a value that only parts make, as a convolution without its bias or a turned operand,
        also what is made of it: it is a part of the way there."""
        found, todo = set[int](), [*_made(part)]
        while todo:
            value = todo.pop()
            if value not in found:
                found.add(value)
                todo += self._of_unrecorded.get(value, ())
        return frozenset(found)

    @cached_property
    def _of_unrecorded(self) -> dict[int, set[int]]:
        """Value that no call of the code makes -> what calls make that read it."""
        recorded = {value for call in self.region.calls for value in call.outputs}
        made = {value for part in self.parts for value in _made(part)} - recorded
        found: dict[int, set[int]] = {}
        for call in (call for part in self.parts for call in part.calls):
            for value in made.intersection(operands(call)):
                found.setdefault(value, set()).update(call.outputs)
        return found

    def _us_of(self, values: frozenset[int], target: Target) -> float:
        parts = [part for part in self.parts if not values.isdisjoint(self._computed(part))]
        us = self._us(parts, target) if parts else None
        return inf if us is None else us

    def us_beside(self, other: Division, unit: SearchUnit, target: Target) -> tuple[float, float]:
        """Estimated, of both divisions, of as much around the unit as they have parts for that overlap in neither."""
        values = _made(unit)
        parts = [one._computed(part) for one in (self, other) for part in one.parts]
        while more := [made for made in parts if not made.isdisjoint(values) and not made <= values]:
            values = values.union(*more)
        return self._us_of(values, target), other._us_of(values, target)

    def _us(self, parts: Sequence[Part], target: Target) -> float | None:
        total = 0.0
        solutions = {id(found.unit): found.solution for found in self.results}
        plain: list[Call] = []
        for part in parts:
            solution = solutions.get(id(part))
            calls = plain_calls_of(self.region, part)
            plain += calls
            if isinstance(part, PlainCalls) or calls:
                continue
            if solution is not None and solution.pays:
                total += solution.estimate_us if solution.measured_us is None else solution.measured_us
            else:
                total += pytorch_us(part, target).eager_us
        kept = kept_us(self.region, plain, None, target)
        if kept is None:
            return total if not plain else None
        return total + kept[1]


def to_leave(
    left: Sequence[frozenset[int]], apart: Division, together: Division, target: Target
) -> list[frozenset[int]]:
    """What calls make that are left to PyTorch: of the units that are not faster with them in their kernels.

    left: what calls of units of `together` make that are all left to PyTorch in `apart`
    """
    found: list[frozenset[int]] = []
    for unit in (part for part in together.parts if isinstance(part, SearchUnit)):
        calls = [made for made in left if made <= _made(unit)]
        if calls:
            us, together_us = apart.us_beside(together, unit, target)
            found += calls if us <= together_us else []
    return found


def fastest(divisions: Sequence[Division], target: Target) -> Division:
    """By estimate; of equals the last. A time that is not known counts for the last as well."""
    best, least = divisions[-1], divisions[-1].us(target)
    for one in reversed(divisions[:-1]):
        us = one.us(target)
        if us is not None and least is not None and us < least:
            best, least = one, us
    return best


def left_to_pytorch(unit: SearchUnit) -> list[Call]:
    """Calls of the unit that are several products at once, or products of float8 matrices, or large ones, where it
    holds more than one of them and views; and convolutions: their bias is then added by what follows, which may be
    another unit."""
    large = large_products(unit)
    products = Counter(i for op in unit.program.ops if op.kind.contracts for i in unit.origins.get(op.name, ()))
    calls = {i: unit.calls[i] for i in products if i < len(unit.calls)}
    several = [call for i, call in calls.items() if products[i] > 1 or i in large or _is_of_float8(call)]
    others = [call for call in unit.calls if call not in several and not _is_view(call)]
    windowed = [call for call in unit.calls if canonical(call.target) in WINDOW_DIMS]
    return [*(several if others else []), *windowed]


def all_left(whole: Sequence[Part], cut: Callable[[Sequence[frozenset[int]]], Sequence[Part]]) -> list[frozenset[int]]:
    """What the calls make that are left to PyTorch, of all units. A norm that was in a unit with one of them is then in
    one with the next product that reads it, which is left as well.

    whole: the parts of a region. cut: its parts without the calls that make these
    """
    left: list[frozenset[int]] = []
    parts = whole
    while True:
        units = [part for part in parts if isinstance(part, SearchUnit)]
        made = [frozenset(call.outputs) for unit in units for call in left_to_pytorch(unit)]
        if not (more := [one for one in made if one not in left]):
            return left
        left += more
        parts = cut(left)


def _is_of_float8(call: Call) -> bool:
    entry = entry_for(call.target)
    return entry is not None and entry.in_float8


def _made(unit: Part) -> frozenset[int]:
    return frozenset(value for call in unit.calls for value in call.outputs)


def _is_view(call: Call) -> bool:
    entry = entry_for(call.target)
    return entry is not None and entry.shape_only
