"""Ranges that begin where a variance has something to divide by.

The variance of one element, with Bessel's correction, is zero divided by zero: NaN for PyTorch. A kernel for a range
that has this size could not be tested there. So the region is made for the sizes from the next one on, and the user's
code runs at the others.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from mugraph.ir.calls import Call
from mugraph.ir.ranges import DynamicSize, SizeRange
from mugraph.ir.region import Region
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import entry_for
from mugraph.ops.families.reduce import spread
from mugraph.trace.regions.clipped import infos_at


def divided(region: Region) -> Region:
    """The region with ranges that begin later, where a variance needs it and a range has two sizes left."""
    while region.dynamic is not None:
        short = next((one for call in region.calls for one in _too_small(region, region.dynamic, call)), None)
        if short is None or short.least + 1 >= short.largest:
            return region
        later = replace(short, least=short.least + 1)
        first, *others = (later if one == short else one for one in region.dynamic.ranges)
        region = replace(region, dynamic=replace(region.dynamic, range=first, others=tuple(others)))
    return region


def _too_small(region: Region, made: DynamicSize, call: Call) -> list[SizeRange]:
    """The ranges at whose least sizes a variance is of no more elements than it divides by less."""
    entry = entry_for(call.target)
    if entry is None or "correction" not in entry.parameters:
        return []
    try:
        given = Arguments(call, entry.parameters, call.outputs[0])
        value, (along, less) = given.ref("input").value, spread(given)
    except NotLowerable:
        return []
    shape = infos_at(region.values, made, {one.name: one.least for one in made.ranges})[value].shape
    dims = [dim % len(shape) for dim in along] if along else range(len(shape))
    if prod(shape[dim] for dim in dims) > less:
        return []
    products = made.shapes.get(value, ())
    names = {name for dim in dims if products for name in products[dim].sizes}
    return [one for one in made.ranges if one.name in names]
