"""Loops that append to a list what is stacked after them: with what is around them they are one region.

`y = []`, `for i in range(n): y.append(f(x[i]))` and `torch.stack(y)` compute what `torch.stack([f(x[i]) for i in …])`
does. Any other loop is in no region as a whole: what its body computes is a region, made once for all iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mugraph.ir.calls import Call
from mugraph.ir.region import Region
from mugraph.ops.algebra.registry import entry_for
from mugraph.ops.alike_parts import parts_of_join
from mugraph.trace.regions.executions import Item
from mugraph.trace.run.tape import Event, Happening, Made


def lists_made(events: Iterable[Event]) -> set[int]:
    """Lists and dicts that are written out where they are made, by their id."""
    return {id(event.value) for event in events if isinstance(event, Made)}


def lists_written(events: Sequence[Event]) -> set[int]:
    """Those that were there before, and are written to."""
    written = {event.mutates for event in events if isinstance(event, Happening) and event.mutates is not None}
    return written - lists_made(events)


def are_stacked(region: Region, loops: Sequence[Item]) -> bool:
    """Does the region join, for each of the loops, as many alike parts as the loop has iterations?"""
    graph = _Graph.of(region)
    found = {len(part) for i in range(len(graph.calls)) for part in parts_of_join(graph, i)}
    return all(len(loop.children) in found for loop in loops)


@dataclass(frozen=True)
class _Graph:
    calls: Sequence[Call]
    producer: Mapping[int, int]

    @staticmethod
    def of(region: Region) -> _Graph:
        return _Graph(region.calls, {value: i for i, call in enumerate(region.calls) for value in call.outputs})

    def shape_only(self, i: int) -> bool:
        entry = entry_for(self.calls[i].target)
        return entry is not None and entry.shape_only
