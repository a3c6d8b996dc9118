"""The cut of a region into parts, as the rest of the engine uses it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mugraph.ir.region import Part, Region
from mugraph.units.biases import with_biases_apart
from mugraph.units.own_names import with_own_names
from mugraph.units.part_views import with_views
from mugraph.units.ranged import ranged_units


def cut_region(region: Region, refused: Collection[frozenset[int]] = ()) -> tuple[Region, tuple[Part, ...]]:
    """The region's parts, in which one name of a tensor means one value; and the region with the views they read, and
    with what is known of the values that only parts make.

    refused: as `ranged_units` takes it
    """
    apart = with_biases_apart(region)
    parts = with_own_names(ranged_units(apart, refused)[0])
    return with_views(replace(region, values=apart.values), parts), parts


def reasons_against(region: Region) -> tuple[str, ...]:
    """Why calls of the region that have a program are in no search unit, one sentence each."""
    return ranged_units(with_biases_apart(region))[1]
