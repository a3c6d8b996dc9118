"""Search units with several outputs: two units that share what they read, or of which one reads the other, become one.

A search unit as `search_units` cuts it has one output. Sometimes several values leave a region, or are needed by
different units: a residual and the product after its norm; queries, keys and values; a mean and a variance. One kernel
may then compute them together, and read or compute what they share once.

Two units are joined if the estimate says that this saves enough of their time to be worth a search. The search then
compares one kernel for all values with every other division of the values among kernels. The units as they were are
kept for the case that it finds nothing.

Chains of element-wise operators are cut from what is left then (chains.py), and joined with one another, where their
results have as many elements: a step of an optimiser, the gradients of a gate. One pass over memory computes all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod

from mugraph.ir.calls import is_inplace
from mugraph.ir.region import Part, Region, SearchUnit
from mugraph.units.chains import with_chains
from mugraph.units.joiner import Item, Joiner
from mugraph.units.region_graph import RegionGraph
from mugraph.units.search_units import single_units


def units(region: Region, refused: Collection[frozenset[int]] = ()) -> tuple[Part, ...]:
    """The region's units, those joined that gain by it, in an order in which they can run.

    refused: sets of values that no search unit may compute, nor a part of one
    """
    cut = single_units(region, refused=refused)
    # Written in place to what is made here, calls have to keep their order. What others see, no unit moves across.
    barrier = RegionGraph(region).barrier
    ordered = any(is_inplace(call) and i not in barrier for i, call in enumerate(region.calls))
    if not ordered and any(isinstance(unit, SearchUnit) for unit in cut):
        cut = Joiner(region, cut, refused).joined()
    cut = with_chains(region, cut, refused)
    if not ordered and any(map(_is_chain, cut)):
        views = {
            value: info for unit in cut if isinstance(unit, SearchUnit) for value, info in unit.view_values.items()
        }
        cut = _ChainJoiner(replace(region, values={**region.values, **views}), cut, refused).joined()
    return cut


def _is_chain(unit: Part) -> bool:
    """Element-wise; a copy to another order in memory is none: it stays with the call that it is made for."""
    if not isinstance(unit, SearchUnit) or unit.program.is_copy:
        return False
    return not any(op.kind.reduces or op.kind.scans for op in unit.program.ops)


class _ChainJoiner(Joiner):
    """Of chains with one another, and with calls that they read or that read them."""

    _takes_parts = True

    def _touch(self, one: Item, other: Item, views: Sequence[Item] = ()) -> bool:
        items = [item for item in (one, other) if isinstance(item.unit, SearchUnit)]
        if not items or not all(_is_chain(item.unit) for item in items) or self._elements(one) != self._elements(other):
            return False
        return super()._touch(one, other, views)

    def _elements(self, item: Item) -> set[int]:
        """Of each result."""
        return {prod(self._region.values[value].shape) for value in item.writes}

    def _made(self, one: Item, other: Item, calls: frozenset[int], views: Sequence[Item] = ()) -> Item | None:
        made = super()._made(one, other, calls, views)
        return made if made is not None and _is_chain(made.unit) else None
