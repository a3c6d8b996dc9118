"""The ways in which one piece of code was executed: what is made of each, those that did the same as one.

The way that was executed most has a region. With a kernel for each most answers of guards are no, and each takes 30 to
200 microseconds of the host (H200, 27 November 2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.ran import together
from mugraph.ir.region import Range
from mugraph.trace.regions.assemble import Assembled
from mugraph.trace.regions.conditions import merge

Found = dict[tuple[str, Range], list[Assembled]]
"""By function and place: for each way in which the code was executed, what is made of it."""


def overlap(one: Range, other: Range) -> bool:
    return one.start < other.end and other.start < one.end


def add(found: Found, key: tuple[str, Range], *new: Assembled) -> None:
    """Each is put together with the one that is the same but for the code that ran, or is a way of its own."""
    ways = found.setdefault(key, [])
    for other in new:
        for at, known in enumerate(ways):
            like = replace(known.region, ran=other.region.ran, outside=other.region.outside, called=other.region.called)
            if like == other.region:
                ways[at] = _merged(known, other)
                break
        else:
            ways.append(other)


def most_executed(ways: Sequence[Assembled]) -> Assembled:
    """The first of them where there are several."""
    return max(ways, key=lambda way: way.times)


def _merged(known: Assembled, other: Assembled) -> Assembled:
    """Executions that did the same, as one. If different code ran in them, the first one is kept, with its guards."""
    ran = dict(known.region.ran)
    for name, one in other.region.ran.items():
        both = together(ran.get(name, one), one)
        if both is None:
            return known
        ran[name] = both
    called = tuple(sorted({*known.region.called, *other.region.called}))
    outside = {**known.region.outside, **other.region.outside}
    region = replace(known.region, ran=ran, outside=outside, called=called)
    known.others.extend(other.units)
    return replace(known, region=region, conditions=merge(known.conditions, other.conditions))
