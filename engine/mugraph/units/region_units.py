"""The cut of a region into parts, as the rest of the engine uses it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mugraph.ir.region import Part, Region
from mugraph.units.biases import with_biases_apart, without_biases
from mugraph.units.grouped_heads import with_grouped_heads
from mugraph.units.layouts import FASTER, WHOLE, Layout, read_by_calls, turnable, with_channels_last
from mugraph.units.own_names import with_own_names
from mugraph.units.part_views import with_views
from mugraph.units.ranged import ranged_units
from mugraph.units.whole_last import channels_last
from mugraph.units.written_last import written_last


def cut_region(
    region: Region, refused: Collection[frozenset[int]] = (), turned: Layout = FASTER
) -> tuple[Region, tuple[Part, ...]]:
    """The region's parts, in which one name of a tensor means one value; and the region with the views they read, and
    with what is known of the values that only parts make.

    refused: as `ranged_units` takes it
    turned:  convolutions that are computed channels last where only kernels read them. What kernels make for these is
             written so. WHOLE: the region as `channels_last` has it, if it has; what `refused` names has its numbers
    """
    left = {next(iter(values)) for values in refused if len(values) == 1}
    grouped = with_grouped_heads(region)
    relaid = channels_last(grouped) if turned == WHOLE else None
    if relaid is not None:
        region, grouped = replace(relaid, calls=region.calls), relaid.as_made
    apart = with_biases_apart(grouped, left)
    alone = without_biases(grouped, apart)
    without = [frozenset(alone.get(value, value) for value in values) for values in refused]
    ranks = () if isinstance(turned, str) else turned
    chosen = turnable(apart, ranks, {alone.get(value, value) for value in left})
    written: frozenset[int] | None = None
    while True:
        whole = with_channels_last(apart, chosen, written or ())
        parts = with_own_names(ranged_units(whole, without)[0])
        misread = read_by_calls(parts)
        if not misread.isdisjoint(one.result for one in chosen):
            chosen, written = tuple(one for one in chosen if one.result not in misread), None
            continue
        may_be = written_last(whole, parts, chosen)
        if written is None:
            written = may_be
            if written:
                continue
        if written <= may_be:
            return with_views(replace(region, values=whole.values, turned=whole.turned), parts), parts
        written &= may_be


def reasons_against(region: Region) -> tuple[str, ...]:
    """Why calls of the region that have a program are in no search unit, one sentence each."""
    return ranged_units(with_biases_apart(region))[1]
