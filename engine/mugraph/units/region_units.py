"""The cut of a region into parts, as the rest of the engine uses it."""

from __future__ import annotations

from collections.abc import Collection

from mugraph.ir.region import Part, Region
from mugraph.units.own_names import with_own_names
from mugraph.units.part_views import with_views
from mugraph.units.ranged import ranged_units


def cut_region(region: Region, refused: Collection[frozenset[int]] = ()) -> tuple[Region, tuple[Part, ...]]:
    """The region's parts, in which one name of a tensor means one value; and the region with the views they read.

    refused: as `ranged_units` takes it
    """
    parts = with_own_names(ranged_units(region, refused)[0])
    return with_views(region, parts), parts


def reasons_against(region: Region) -> tuple[str, ...]:
    """Why calls of the region that have a program are in no search unit, one sentence each."""
    return ranged_units(region)[1]
