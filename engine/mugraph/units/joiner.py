"""Which two items of a region are joined next, and what they are then. An item is a search unit or one plain call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from mugraph.ir.calls import Call, TensorInfo, is_inplace, operands
from mugraph.ir.dtypes import INTEGERS, is_written
from mugraph.ir.memory_order import is_dense
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.ops.algebra.registry import entry_for
from mugraph.trace.regions.value_names import value_names
from mugraph.units.fusion import fits, joins_well, kernel_us
from mugraph.units.growing import identifier_of
from mugraph.units.looked_up import gathers_well
from mugraph.units.lower import Lowered, NotLowerable, lower
from mugraph.units.order import search_unit
from mugraph.units.part_views import PartViews, read_by
from mugraph.units.region_graph import RegionGraph
from mugraph.units.shared_axes import with_shared_axes

MAX_OUTPUTS = 4
"""Of a search unit."""
MAX_OPS = 20
"""Operators of a search unit with several outputs: each output is searched for itself."""
WORTH = 0.03
"""Share of their estimated time that two units must save."""
MAX_ITEMS = 400
"""Items of a region; in a larger region nothing is joined."""


@dataclass(eq=False)
class Item:
    """A search unit, or one plain call.

    calls: positions in the region. us: estimated. parts: what it was joined of
    reads, writes: value numbers
    """

    unit: Part
    calls: frozenset[int]
    reads: frozenset[int]
    writes: tuple[int, ...]
    us: float
    parts: tuple[Item, ...] = field(default=())

    @property
    def own(self) -> tuple[Item, ...]:
        return self.parts or (self,)


class Joiner:
    _takes_parts = False
    """Whether a joined unit may read parts of tensors: with products and reductions, searches find less for it than for
    its parts."""

    def __init__(self, region: Region, cut: Sequence[Part], refused: Collection[frozenset[int]]) -> None:
        self._region = region
        self._refused = refused
        self._names = value_names(region)
        self._graph = RegionGraph(region)
        self._segment = self._graph.segment
        self._returned = {live.value for live in region.live_outs}
        self._views = PartViews(region)
        self._items = [item for unit in cut for item in self._items_of(unit)]
        self._tried: dict[frozenset[int], Item | None] = {}

    def joined(self) -> tuple[Part, ...]:
        if len(self._items) > MAX_ITEMS:
            return self._ordered()
        while (best := self._best()) is not None:
            joined, both = best
            self._items = self._still_read([item for item in self._items if item not in joined] + [both])
        return self._ordered()

    def _items_of(self, unit: Part) -> Iterator[Item]:
        if isinstance(unit, SearchUnit):
            calls = frozenset(map(self._place, unit.calls))
            reads, writes = read_by(unit), tuple(unit.outputs.values())
            yield Item(unit, calls, reads, writes, self._us({*reads, *writes}, unit.program))
            return
        for call in unit.calls:
            reads = frozenset(operands(call))
            writes = tuple(value for value in call.outputs if value not in reads)
            us = self._us({*reads, *writes})
            yield Item(PlainCalls((call,)), frozenset({self._place(call)}), reads, writes, us)

    def _place(self, call: Call) -> int:
        """The position of a call in the region. `units` may have given the call another target."""
        calls = self._region.calls
        return next(i for i, one in enumerate(calls) if one.outputs == call.outputs and one.args == call.args)

    def _us(self, values: set[int], program: TensorProgram | None = None) -> float:
        return kernel_us([self._region.values[value] for value in sorted(values)], program)

    # --- joining ---------------------------------------------------------------------------------------------------

    def _best(self) -> tuple[Collection[Item], Item] | None:
        """The items that save most when they are joined, and what they are then: two of them, and the views through
        which one reads the other."""
        best: tuple[Collection[Item], Item] | None = None
        most = 0.0
        seen = self._seen()
        for one, other in combinations(self._items, 2):
            views = (*_views_from(one, other, seen), *_views_from(other, one, seen))
            if not self._touch(one, other, views) or not self._are_free(one, other, views):
                continue
            both = self._both(one, other, views)
            if both is None:
                continue
            saved = one.us + other.us - both.us
            if saved > most and saved >= WORTH * (one.us + other.us):
                best, most = ((one, other, *self._private(views, (one, other, *views))), both), saved
        return best

    def _touch(self, one: Item, other: Item, views: Sequence[Item] = ()) -> bool:
        """Whether two search units share what they read, or one item reads the other and one of them is a search
        unit. views: through which it reads it"""
        lax = [isinstance(item.unit, SearchUnit) for item in (one, other)]
        if not any(lax) or not all(map(self._can_join, (one, other))):
            return False
        reads = bool(views or one.reads.intersection(other.writes) or other.reads.intersection(one.writes))
        return reads or (all(lax) and bool(one.reads & other.reads))

    def _seen(self) -> Mapping[int, Item]:
        """Values that are views and nothing else -> the item that is the view."""
        found: dict[int, Item] = {}
        for item in self._items:
            if isinstance(item.unit, SearchUnit) or len(item.reads) != 1:
                continue
            (call,) = item.unit.calls
            if self._graph.shape_only(*item.calls) and not is_inplace(call):
                found |= dict.fromkeys(item.writes, item)
        return found

    def _still_read(self, items: list[Item]) -> list[Item]:
        """Without plain calls of which only what has been joined read the results, and has computed them itself."""
        while True:
            needed = self._returned.union(*(item.reads for item in items))
            left = [item for item in items if needed.intersection(item.writes) or not self._can_be_left_out(item)]
            if len(left) == len(items):
                return left
            items = left

    def _can_be_left_out(self, item: Item) -> bool:
        """Was it read by others before?"""
        used = any(self._graph.users.get(value) for value in item.writes)
        return used and not isinstance(item.unit, SearchUnit) and self._graph.lowerable(*item.calls)

    def _private(self, views: Sequence[Item], joined: Collection[Item]) -> Sequence[Item]:
        """Those of the views that nothing else reads. The others are taken of the joined unit's result as well."""
        needed = self._returned.union(*(item.reads for item in self._items if item not in joined))
        return [view for view in views if not needed.intersection(view.writes)]

    def _can_join(self, item: Item) -> bool:
        """Whether the item can be part of a join. A plain call can if a kernel can compute it and it is more than a
        view: a conversion is, which PyTorch makes a kernel of."""
        if isinstance(item.unit, SearchUnit):
            return True
        (call,) = item.unit.calls
        entry = entry_for(call.target)
        if entry is None or len(call.outputs) != 1 or is_inplace(call):
            return False
        out = self._region.values[call.outputs[0]]
        if entry.shape_only and not self._converts(call, out):
            return False
        return is_dense(out)

    def _converts(self, call: Call, out: TensorInfo) -> bool:
        read = operands(call)
        return (
            len(read) == 1
            and is_written(out.dtype)
            and self._region.values[read[0]].dtype not in (out.dtype, *INTEGERS)
        )

    def _are_free(self, one: Item, other: Item, views: Collection[Item] = ()) -> bool:
        """Whether no third item has to run between them, but for views that are joined with them."""
        return not (self._between(one, other, views) or self._between(other, one, views))

    def _between(self, first: Item, last: Item, views: Collection[Item]) -> bool:
        """Whether a third item depends on the first, and the last depends on it. That item may read the views, too."""
        makers = {value: item for item in self._items for value in item.writes}
        todo = [makers[value] for value in last.reads if value in makers]
        todo = [item for item in todo if item is not first and item not in views]
        seen: set[int] = set()
        while todo:
            item = todo.pop()
            if item is first:
                return True
            if id(item) not in seen:
                seen.add(id(item))
                todo.extend(makers[value] for value in item.reads if value in makers)
        return False

    def _both(self, one: Item, other: Item, views: Sequence[Item]) -> Item | None:
        calls = one.calls.union(other.calls, *(view.calls for view in views))
        made = {value for i in calls for value in self._region.calls[i].outputs}
        if len({self._segment[i] for i in calls}) > 1 or any(made.issuperset(values) for values in self._refused):
            return None
        if calls not in self._tried:
            self._tried[calls] = self._made(one, other, calls, views)
        return self._tried[calls]

    def _made(self, one: Item, other: Item, calls: frozenset[int], views: Sequence[Item] = ()) -> Item | None:
        """Both items as one search unit; None if they cannot be one."""
        joined = (one, other, *self._private(views, (one, other, *views)))
        rest = [item for item in self._items if item not in joined]
        needed = self._returned.union(*(item.reads for item in rest))
        outputs = [value for value in sorted((*one.writes, *other.writes)) if value in needed]
        if not outputs or len(outputs) > MAX_OUTPUTS:
            return None
        lowered = self._lowered(calls, outputs)
        if lowered is None or len(lowered.program.compute_ops) > MAX_OPS * len(outputs):
            return None
        program = lowered.program
        if not fits(program) or not joins_well(program, crowded=True) or not gathers_well(program):
            return None
        parts = (*one.own, *other.own, *(view for view in views if view in joined))
        apart = tuple(item.unit for item in in_order(parts))
        unit = replace(search_unit(self._region, calls, lowered, self._views), apart=apart)
        reads = read_by(unit)
        return Item(unit, calls, reads, tuple(outputs), self._us({*reads, *outputs}, lowered.program), parts)

    def _lowered(self, calls: frozenset[int], outputs: Sequence[int]) -> Lowered | None:
        region = self._region
        chosen = [region.calls[i] for i in sorted(calls)]
        try:
            lowered = lower(
                chosen,
                region.values,
                region.live_ins,
                outputs,
                identifier_of(region),
                self._names,
                region.names.keys(),
                as_they_lie=True,
            )
        except NotLowerable:
            return None
        if lowered.views and not self._takes_parts:
            return None
        return replace(lowered, program=with_shared_axes(lowered.program))

    # --- the order -------------------------------------------------------------------------------------------------

    def _ordered(self) -> tuple[Part, ...]:
        """The items in the order of their calls, as far as what each reads allows. Neighbouring plain calls become
        one."""
        result: list[Part] = []
        run: list[Call] = []
        for item in in_order(self._items):
            if isinstance(item.unit, PlainCalls):
                run += item.unit.calls
                continue
            if run:
                result.append(PlainCalls(tuple(run)))
                run = []
            result.append(item.unit)
        return (*result, PlainCalls(tuple(run))) if run else tuple(result)


def _views_from(first: Item, last: Item, seen: Mapping[int, Item]) -> Sequence[Item]:
    """Views through which the last item reads what the first one writes. seen: as of Joiner"""

    def way(value: int) -> tuple[Item, ...]:
        view = seen.get(value)
        if view is None or view in (first, last):
            return ()
        (of,) = view.reads
        if of in first.writes:
            return (view,)
        above = way(of)
        return (*above, view) if above else ()

    return tuple(dict.fromkeys(view for value in last.reads for view in way(value)))


def in_order(items: Sequence[Item]) -> list[Item]:
    """By last call, each after what it reads."""
    waiting = sorted(items, key=lambda item: max(item.calls))
    to_come = {value for item in items for value in item.writes}
    order: list[Item] = []
    while waiting:
        item = next(item for item in waiting if not to_come & item.reads - set(item.writes))
        waiting.remove(item)
        to_come.difference_update(item.writes)
        order.append(item)
    return order
