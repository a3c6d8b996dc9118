"""Search units of a region with a dynamic size: which axes of their programs have it.

A unit's calls become a tensor program at a second size as well. The two must be one program, but for the extents of
axes: then the program is right for every size, and the axes whose extents differ are the dynamic ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mugraph.ir.calls import Call, TensorInfo
from mugraph.ir.program import TensorProgram
from mugraph.ir.ranges import DynamicSize, dense_strides, with_size
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.ir.tensors import Tensor
from mugraph.trace.regions.dynamic import Varies
from mugraph.trace.regions.size_words import masked_along, other_program
from mugraph.trace.regions.value_names import value_names
from mugraph.units.chains import with_chains
from mugraph.units.growing import identifier_of
from mugraph.units.joining import units
from mugraph.units.lower import NotLowerable, lower
from mugraph.units.ranged_views import general_views
from mugraph.units.search_units import is_divisible, single_units

CUTS = 3
"""How often a region is cut again, without units that cannot have a range."""


def ranged_units(region: Region, refused: Collection[frozenset[int]] = ()) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """The region's units, whose programs have the least size of each dynamic axis; and the reasons why others are no
    units, in one sentence each.

    If a unit's program is another one at another size, the region is cut again without that unit; a unit that cannot be
    divided is left to PyTorch. Where a size varies units are not joined: what a join saves depends on the size.

    refused: as `units` takes it
    """
    if region.dynamic is None:
        return units(region, refused), ()
    without, reasons = list(refused), list[str]()
    while True:
        cut = with_chains(region, single_units(region, refused=without), without)
        found: list[Part] = []
        divisible: list[SearchUnit] = []
        for unit in cut:
            if not isinstance(unit, SearchUnit):
                found.append(unit)
                continue
            try:
                found.append(_with_least(region, unit, region.dynamic))
            except Varies as error:
                reasons.append(f"{region.dynamic.range.name} cannot have a range: {error}")
                found.append(PlainCalls(unit.calls))
                divisible += [unit] if is_divisible(unit) else []
        if not divisible or len(without) >= len(refused) + CUTS:
            return tuple(found), tuple(dict.fromkeys(reasons))
        without += [frozenset(value for call in unit.calls for value in call.outputs) for unit in divisible]


def values_at(region: Region, made: DynamicSize, size: int) -> dict[int, TensorInfo]:
    """What the region's values are at a size."""
    values = dict(region.values)
    for value, info in values.items():
        shape = _at(info.shape, made.shapes.get(value), size)
        strides = dense_strides(shape) if value in made.dense else _at(info.strides, made.strides.get(value), size)
        values[value] = replace(info, shape=shape, strides=strides)
    return values


def calls_at(calls: Sequence[Call], made: DynamicSize, size: int | str) -> tuple[Call, ...]:
    """Some of the region's calls at a size, or at a size that a variable holds."""
    general = {call.outputs: call for call in made.calls}
    found: list[Call] = []
    for call in calls:
        of = general[call.outputs]
        args = tuple(with_size(arg, size) for arg in of.args)
        kwargs = {key: with_size(arg, size) for key, arg in of.kwargs.items()}
        found.append(replace(call, args=args, kwargs=kwargs))
    return tuple(found)


def region_at(region: Region, size: int) -> Region:
    """The region as if the size were no range but this one; itself where it has none."""
    made = region.dynamic
    if made is None:
        return region
    return replace(region, values=values_at(region, made, size), calls=calls_at(region.calls, made, size), dynamic=None)


def _at(numbers: tuple[int, ...], factors: tuple[int, ...] | None, size: int) -> tuple[int, ...]:
    if factors is None:
        return numbers
    return tuple(factor * size if factor else number for number, factor in zip(numbers, factors, strict=True))


def _with_least(region: Region, unit: SearchUnit, made: DynamicSize) -> SearchUnit:
    """The unit with the least sizes of its program's dynamic axes. Raises Varies where its program is another one
    there."""
    size = made.range.middle
    small = region_at(region, size)
    try:
        lowered = lower(
            calls_at(unit.calls, made, size),
            small.values,
            region.live_ins,
            list(unit.outputs.values()),
            identifier_of(region),
            value_names(region),
            region.names.keys(),
        )
    except NotLowerable as error:
        raise Varies(str(error)) from None
    if made.dense & {*unit.outputs.values()}:
        raise Varies("what a kernel would write grows with its square")
    full, other = unit.program, lowered.program
    if full.sizes.keys() != other.sizes.keys() or (full.ops, _layouts(full)) != (other.ops, _layouts(other)):
        raise Varies(other_program(unit, other, made, size))
    if any(not _same_layout(a, b, full, other) for a, b in zip(full.tensors, other.tensors, strict=True)):
        raise Varies(f"the strides at {made.range.largest} say nothing of those at {size}")
    least: dict[str, int] = {}
    for axis, extent in full.sizes.items():
        if other.sizes[axis] != extent:
            factor = extent // made.range.largest
            if factor < 1 or (extent, other.sizes[axis]) != (factor * made.range.largest, factor * size):
                raise Varies(f"axis {axis} has {extent} at {made.range.largest} and {other.sizes[axis]} at {size}")
            least[axis] = factor * made.range.least
    if masked := masked_along(unit, least):
        raise Varies(masked)
    views = general_views(region, unit, small, lowered.views, size) if unit.views else None
    return replace(unit, program=replace(full, least=least), general_views=views)


def _layouts(program: TensorProgram) -> tuple[object, ...]:
    """The tensors but for their strides, which follow from the region's values."""
    tensors = (*program.tensors, *program.outputs.values())
    return tuple((tensor.name, tensor.dims, tensor.dtype, tensor.source, tensor.windows) for tensor in tensors)


def _same_layout(tensor: Tensor, other: Tensor, full: TensorProgram, small: TensorProgram) -> bool:
    """Does each axis lie just outside the next one at both sizes, or have one stride at both?"""
    strides, others = tensor.axis_strides(full.sizes), other.axis_strides(small.sizes)
    dense = other_dense = 1
    for axis in sorted((a for a in tensor.axes if full.sizes[a] > 1), key=lambda axis: abs(strides[axis])):
        packed, other_packed = strides[axis] == dense, others[axis] == other_dense
        if packed != other_packed or (not packed and strides[axis] != others[axis]):
            return False
        if strides[axis]:
            dense, other_dense = strides[axis] * full.sizes[axis], others[axis] * small.sizes[axis]
    return True
