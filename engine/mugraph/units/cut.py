"""Where a region is cut: its search units, and the calls that stay plain PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.calls import operands
from mugraph.units.fusion import BANDWIDTH, LAUNCH_US, bytes_unread
from mugraph.units.growing import GrowingUnit
from mugraph.units.growth import UnitGrowth
from mugraph.units.region_graph import RegionGraph

Cut = tuple[list[GrowingUnit], set[int]]
"""Search units, and the positions of plain calls."""
_MOST_TRIALS = 12
"""Other cuts that are compared with the greedy one."""


class Cutter:
    """Chooses among the cuts of one region."""

    def __init__(self, graph: RegionGraph, growth: UnitGrowth) -> None:
        self._graph = graph
        self._growth = growth

    def cut(self) -> Cut:
        """The greedy cut, improved by ending units at element-wise calls where the estimate says so.

        A unit that grows backwards from MLP's last product takes in the SwiGLU before it, and then reads two values
        from memory. If the unit before it ends with the SwiGLU, it reads one.
        """
        whole = self._growth.whole()
        if whole is not None:
            return [whole], set()
        best = self._collect(frozenset())
        ends: frozenset[int] = frozenset()
        for i in self._candidates(best[0]):
            other = self._collect(ends | {i})
            # At equal cost, too: what is done once where a value is written is done for every tile where it is read.
            # But not if PyTorch's own calls are more for it.
            less = self._cost(*other) - self._cost(*best)
            if less < -1e-9 or (less <= 1e-9 and self._alone(other[1]) <= self._alone(best[1])):
                best, ends = other, ends | {i}
        return best

    def _candidates(self, units: Sequence[GrowingUnit]) -> list[int]:
        """Inner calls of units that read what other units write: those that read most come first, then the last
        calls."""
        graph = self._graph
        written = {unit.output for unit in units}
        found: list[tuple[int, int]] = []
        for unit in units:
            for i in sorted(unit.calls):
                count = len(written & graph.leaves(i, unit.calls))
                rest = [n for n in unit.calls if n > i]  # where these are views, the call ends its unit already
                if count and not graph.shape_only(i) and not all(graph.shape_only(n) for n in rest):
                    found.append((count, i))
        return [i for _, i in sorted(found, reverse=True)[:_MOST_TRIALS]]

    def _cost(self, units: Sequence[GrowingUnit], plain: set[int]) -> float:
        """Estimated microseconds of a cut, from the bytes it moves and the kernels it launches."""
        graph = self._graph
        unread = sum(bytes_unread(unit.lowered.program) for unit in units)
        moved = [{*graph.inputs(unit.calls), unit.output} for unit in units]
        alone = [graph.calls[i] for i in plain if not graph.shape_only(i)]
        moved += [{*operands(call), *call.outputs} for call in alone]
        return (
            sum(LAUNCH_US + sum(graph.bytes_of(value) for value in values) / BANDWIDTH for values in moved)
            - unread / BANDWIDTH
        )

    def _alone(self, plain: set[int]) -> int:
        return sum(not self._graph.shape_only(i) for i in plain)

    def _collect(self, ends: frozenset[int]) -> Cut:
        """Units and plain calls that the live-outs need, from the last call to the first."""
        graph = self._graph
        units: list[GrowingUnit] = []
        plain: set[int] = set()
        needed = set(graph.returned)
        for i in reversed(range(len(graph.calls))):
            call = graph.calls[i]
            if i not in graph.barrier and not needed.intersection(call.outputs):
                continue
            starts = graph.lowerable(i) and graph.starts_unit(i)
            unit = self._growth.grow(i, needed, ends) if starts else None
            if unit is not None:
                units.append(unit)
                needed.update(graph.inputs(unit.calls))
            else:
                plain.add(i)
                needed.update(operands(call))
        units = self._merge_shared(units)
        return units, self._still_needed(units, plain)

    def _merge_shared(self, units: list[GrowingUnit]) -> list[GrowingUnit]:
        """Computes a unit without a product inside each unit that reads it, where that moves fewer bytes."""
        graph = self._graph
        merged = sorted(units, key=lambda unit: unit.last)
        for small in [unit for unit in merged if self._can_repeat(unit)]:
            users = [unit for unit in merged if small.output in graph.inputs(unit.calls)]
            readers = graph.users.get(small.output, set())
            if len(users) < 2 or not all(any(i in unit.calls for unit in users) for i in readers):
                continue
            larger = [self._growth.together(unit, small) for unit in users]
            if any(unit is None for unit in larger):
                continue
            own = sum(graph.bytes_of(value) for value in graph.inputs(small.calls))
            apart = own + (1 + len(users)) * graph.bytes_of(small.output)
            if len(users) * own > apart:
                continue
            replaced = dict(zip((unit.output for unit in users), larger, strict=True))
            merged = [replaced.get(unit.output) or unit for unit in merged if unit is not small]
        return merged

    def _can_repeat(self, unit: GrowingUnit) -> bool:
        is_long = any(op.kind.contracts or op.kind.is_exponential for op in unit.lowered.program.ops)
        return not is_long and unit.output not in self._graph.returned

    def _still_needed(self, units: Sequence[GrowingUnit], plain: set[int]) -> set[int]:
        """Plain calls whose results something reads. After merging, some may have no reader left."""
        graph = self._graph
        needed = set(graph.returned).union(*(graph.inputs(unit.calls) for unit in units))
        kept: set[int] = set()
        for i in sorted(plain, reverse=True):
            if i in graph.barrier or needed.intersection(graph.calls[i].outputs):
                kept.add(i)
                needed.update(operands(graph.calls[i]))
        return kept
