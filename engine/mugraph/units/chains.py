"""Chains of element-wise operators, among the calls that no other search unit has: one kernel in place of several.

PyTorch runs each such operator as a kernel of its own, which is one pass over memory. What products and reductions take
into their kernels is chosen before (cut.py, joining.py), and does not change by what is cut here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mugraph.baseline.launches import launches
from mugraph.ir.calls import are_known, operands
from mugraph.ir.region import Call, Named, Part, PlainCalls, Region, SearchUnit
from mugraph.trace.regions.value_names import value_names
from mugraph.units.cut import Cutter
from mugraph.units.fusion import bytes_of
from mugraph.units.growing import GrowingUnit, UnitPrograms
from mugraph.units.growth import UnitGrowth
from mugraph.units.order import in_order
from mugraph.units.part_views import read_by
from mugraph.units.region_graph import RegionGraph

MAX_OPS = 64
"""Operators of a chain: the search has nothing to decide about them."""
LEAST_TURNED = 1 << 20
"""Bytes of a copy to another order: less takes a start of a kernel, whoever copies it."""


def is_chain(unit: GrowingUnit, graph: RegionGraph) -> bool:
    """Does the unit compute each element by itself, in calls that PyTorch runs as several kernels? Or does it copy
    images to another order in memory, which PyTorch does far from the memory's speed?"""
    if any(op.kind.reduces for op in unit.lowered.program.ops):
        return False
    region, calls = graph.region, [graph.calls[i] for i in sorted(unit.calls)]
    if len(calls) == 1 and graph.turns(calls[0]):
        return bytes_of(region.values[unit.output]) >= LEAST_TURNED
    return are_known(calls, region.values) and len(launches(calls, region.values)) > 1


def with_chains(region: Region, parts: Sequence[Part], refused: Collection[frozenset[int]] = ()) -> tuple[Part, ...]:
    """The parts, with chains in place of the plain calls that are some. refused: as of `units`"""
    found: list[Part] = []
    names = value_names(region)
    values = dict(region.values)
    for part in parts:  # each view has a number of its own
        if isinstance(part, SearchUnit):
            values.update(part.view_values)
    for part in parts:
        if isinstance(part, SearchUnit):
            found.append(part)
            continue
        for piece in _cut(_region_of(replace(region, values=values), part, parts), refused, names):
            found.append(piece)
            if isinstance(piece, SearchUnit):
                values.update(piece.view_values)
    return tuple(found)


def _cut(region: Region, refused: Collection[frozenset[int]], names: Mapping[int, str]) -> tuple[Part, ...]:
    """names: of the values in the whole region. The same calls at another size are named after it as well."""
    graph = RegionGraph(region)
    programs = UnitPrograms(graph, MAX_OPS, MAX_OPS, refused, names)
    growth = UnitGrowth(graph, programs, lambda unit: is_chain(unit, graph))
    cutter = Cutter(graph, growth)
    return in_order(graph, *cutter.cut())


def _region_of(region: Region, part: PlainCalls, parts: Sequence[Part]) -> Region:
    """The calls as a region of their own, which ends with what others read."""
    made = {value for call in part.calls for value in call.outputs}
    wanted = {live.value for live in region.live_outs}.union(*(_reads(other) for other in parts if other is not part))
    live_outs = tuple(Named(region.names.get(value, ""), value) for value in sorted(made & wanted))
    return replace(region, calls=part.calls, live_outs=live_outs)


def _reads(part: Part) -> Collection[int]:
    calls: Sequence[Call] = part.calls
    read = {value for call in calls for value in operands(call)}
    return read | read_by(part) if isinstance(part, SearchUnit) else read
