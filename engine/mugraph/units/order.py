"""A cut of a region as units, in an order in which they can run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mugraph.ir.calls import operands
from mugraph.ir.memory_order import is_dense
from mugraph.ir.region import Call, Part, PlainCalls, Region, SearchUnit, Symbol
from mugraph.units.growing import GrowingUnit
from mugraph.units.lower import Lowered
from mugraph.units.part_views import PartViews
from mugraph.units.region_graph import RegionGraph

_VIEWS = frozenset({"Tensor.view"})


def in_order(graph: RegionGraph, units: Sequence[GrowingUnit], plain: set[int]) -> tuple[Part, ...]:
    """By last call: whatever a unit reads was computed by an earlier call of the region."""
    by_last = {unit.last: unit for unit in units}
    values = graph.region.values
    restrided = {unit.output for unit in units if not is_dense(values[unit.output])}
    result: list[Part] = []
    run: list[Call] = []
    views = PartViews(graph.region)
    for i, call in enumerate(graph.calls):
        if i in plain:
            run.append(_free_of_strides(graph, call, restrided))
        if i in by_last:
            if run:
                result.append(PlainCalls(tuple(run)))
                run = []
            unit = by_last[i]
            result.append(search_unit(graph.region, unit.calls, unit.lowered, views))
    if run:
        result.append(PlainCalls(tuple(run)))
    return tuple(result)


def search_unit(region: Region, places: Collection[int], lowered: Lowered, views: PartViews) -> SearchUnit:
    """places: of its calls in the region. views: numbers of parts of tensors that it reads"""
    calls = tuple(region.calls[i] for i in sorted(places))
    parts = {name: views.of(view, calls[0]) for name, view in lowered.views.items()}
    inputs = {name: parts[name][-1] if name in parts else value for name, value in lowered.inputs.items()}
    made = tuple(dict.fromkeys(number for numbers in parts.values() for number in numbers))
    found = SearchUnit(
        lowered.program,
        inputs,
        lowered.outputs,
        calls,
        lowered.origins,
        views=tuple(views.calls[number] for number in made),
        view_values={number: views.values[number] for number in made},
        viewed={view.value: region.values[view.value] for view in lowered.views.values()},
        laid=lowered.laid,
    )
    return replace(found, values=found.known({**region.values, **found.view_values}))


def _free_of_strides(graph: RegionGraph, call: Call, restrided: set[int]) -> Call:
    """A `view` of a unit's output, where the strides differ from those recorded, as a `reshape`: PyTorch may copy. Only
    of what is not written to in place, because a copy is not the same memory."""
    if call.target not in _VIEWS or any(isinstance(a, Symbol) for a in call.args) or graph.is_written(call):
        return call
    return replace(call, target="Tensor.reshape") if graph.roots(operands(call)[0]) & restrided else call
