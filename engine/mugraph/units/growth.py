"""How search units grow: from their output backwards, the nearest producers first."""

from __future__ import annotations

from collections.abc import Callable

from mugraph.ir.calls import operands
from mugraph.ir.dtypes import INTEGERS, STORED
from mugraph.ops.alike_parts import parts_of_join
from mugraph.units.fusion import joins_well
from mugraph.units.growing import GrowingUnit, UnitPrograms, worthwhile
from mugraph.units.lower import Lowered
from mugraph.units.region_graph import RegionGraph

_NOT_READ = INTEGERS - STORED.keys()
"""Types of whole numbers that kernels read, if at all, to compare them."""
_CALLS_AN_OPERATOR = 1.5
"""Calls per operator, at most: some calls are casts, or multiply by 1, and become no operator."""


class UnitGrowth:
    """Makes the search units of one region. is_worthwhile: what a set of calls must have to be one"""

    def __init__(
        self, graph: RegionGraph, programs: UnitPrograms, is_worthwhile: Callable[[GrowingUnit], bool] = worthwhile
    ) -> None:
        self._graph = graph
        self._programs = programs
        self._is_worthwhile = is_worthwhile
        self._parts: dict[int, tuple[frozenset[int], ...]] = {}

    def whole(self) -> GrowingUnit | None:
        """The region as one unit."""
        graph = self._graph
        returned = {live.value for live in graph.region.live_outs}
        if len(returned) != 1:
            return None
        (output,) = returned
        calls = graph.cone(output)
        if not calls or graph.barrier or not all(graph.lowerable(i) for i in calls):
            return None
        again = {i for call in calls for part in self._parts_of(call) for i in part - {min(part)}}
        if sum(not graph.shape_only(i) for i in calls - again) > _CALLS_AN_OPERATOR * self._programs.most:
            return None
        lowered = self._programs.lower(calls, output, self._programs.most)
        if lowered is None or not joins_well(lowered.program, crowded=False):
            return None
        unit = GrowingUnit(calls, output, lowered)
        return unit if self._is_worthwhile(unit) else None

    def grow(self, root: int, needed: set[int], ends: frozenset[int]) -> GrowingUnit | None:
        """The largest unit that ends with call `root`, its nearest producers first.

        needed: values other units read. ends: calls that may only end a unit
        """
        graph = self._graph
        output = graph.calls[root].outputs[0]
        calls = self._with_parts(frozenset({root}), root, output, needed - {output}) or frozenset({root})
        lowered = self._programs.lower(calls, output, self._programs.max_ops)
        refused: set[int] = set()
        while not graph.stands_alone(graph.calls[root]):
            near = {graph.producer.get(value, -1) for value in graph.inputs(calls)} - {-1} - refused - ends
            if not near:
                break
            nearest = max(near)
            joined = self._joined(calls, nearest, output, needed - {output})
            if joined is None:
                refused.add(nearest)
                continue
            calls, lowered = joined
            refused.clear()  # a value can become private when a later user of it joins
        if lowered is None or not self._is_worthwhile(unit := GrowingUnit(calls, output, lowered)):
            return None
        return self._trimmed(unit)

    def _joined(
        self, calls: frozenset[int], i: int, output: int, needed: set[int]
    ) -> tuple[frozenset[int], Lowered | None] | None:
        """The unit with call `i` added; None if that is not possible. A unit of views alone has no program yet.

        Whole numbers that are computed here, as codes of packed weights, are no inputs: what makes them is added too.
        """
        graph = self._graph
        larger = calls | {i}
        if not self._may_join(i, larger, max(calls), needed):
            return None
        larger = self._with_parts(larger, i, output, needed) or larger
        if all(graph.shape_only(n) for n in larger):
            return larger, None
        lowered = self._programs.lower(larger, output, self._programs.max_ops)
        if lowered is None:
            larger = self._with_whole_numbers(larger, calls, needed)
            lowered = self._programs.lower(larger, output, self._programs.max_ops)
        if lowered is None or not joins_well(lowered.program, crowded=True):
            return None
        return larger, lowered

    def _parts_of(self, i: int) -> tuple[frozenset[int], ...]:
        if i not in self._parts:
            self._parts[i] = parts_of_join(self._graph, i)
        return self._parts[i]

    def _with_parts(self, calls: frozenset[int], i: int, output: int, needed: set[int]) -> frozenset[int] | None:
        """With the parts that call `i` of the unit joins, where they are one value with one more axis and may all be
        computed here."""
        parts = frozenset[int]().union(*self._parts_of(i))
        larger, root = calls | parts, max(calls)
        if not parts or not all(self._may_join(part, larger, root, needed) for part in parts):
            return None
        lowered = self._programs.lower(larger, output, self._programs.max_ops)
        return larger if lowered is not None and joins_well(lowered.program, crowded=True) else None

    def _may_join(self, i: int, larger: frozenset[int], root: int, needed: set[int]) -> bool:
        graph = self._graph
        if not graph.lowerable(i) or graph.segment[i] != graph.segment[root]:
            return False
        is_made_of_nothing = not operands(graph.calls[i])  # it may be made again where it is read
        private = all(graph.private(value, larger, needed) for value in graph.calls[i].outputs)
        return private or is_made_of_nothing or graph.shape_only(i)

    def _with_whole_numbers(self, larger: frozenset[int], calls: frozenset[int], needed: set[int]) -> frozenset[int]:
        """With the calls that make the whole numbers it reads, but for those that something else reads."""
        graph = self._graph
        while True:
            read = {v for v in graph.inputs(larger) if graph.region.values[v].dtype in _NOT_READ}
            near = {graph.producer.get(value, -1) for value in read} - {-1}
            more = {i for i in near if self._may_join(i, larger | near, max(calls), needed)}
            if not more:
                return larger
            larger |= more

    def _trimmed(self, unit: GrowingUnit) -> GrowingUnit:
        """The unit without views of other units' outputs that would give it more axes than it needs. Outside the unit
        such a view costs nothing; inside, `o.transpose(1, 2).reshape(b, s, h * d) @ w` is a product over two axes in
        place of one."""
        graph = self._graph
        for i in sorted(unit.calls - {unit.last}, reverse=True):
            chain = graph.view_chain(i, unit.calls)
            if not chain or any(not graph.is_computed(value) for value in graph.inputs(chain)):
                continue
            if any(graph.repeats(n) for n in chain):  # what reads it elsewhere reads a larger copy
                continue
            users = {user for n in chain for value in graph.calls[n].outputs for user in graph.users.get(value, set())}
            fewer = unit.calls - chain
            if any(user in fewer for user in users):
                lowered = self._programs.lower(fewer, unit.output, self._programs.most)
                if lowered is not None and len(lowered.program.sizes) < len(unit.lowered.program.sizes):
                    unit = GrowingUnit(fewer, unit.output, lowered)
        return unit

    def together(self, unit: GrowingUnit, small: GrowingUnit) -> GrowingUnit | None:
        """The unit with `small`, whose result it reads, computed inside it."""
        calls = unit.calls | small.calls
        if len({self._graph.segment[i] for i in calls}) > 1:
            return None
        lowered = self._programs.lower(calls, unit.output, self._programs.max_ops)
        if lowered is None or not joins_well(lowered.program, crowded=True):
            return None
        return GrowingUnit(calls, unit.output, lowered)
