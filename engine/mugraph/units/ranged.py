"""Search units of a region with dynamic sizes: which axes of their programs have them.

A unit's calls become a tensor program at other sizes as well. They must be one program, but for the extents of axes:
then the program is right for every size, and the axes whose extents differ are the dynamic ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import Call, TensorInfo
from mugraph.ir.program import TensorProgram
from mugraph.ir.ranges import Compared, DynamicSize, Point, Product, largest_point, leading, product_of
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.ir.sized_arguments import with_sizes
from mugraph.ir.tensors import Tensor
from mugraph.ops.algebra.registry import entry_for
from mugraph.ops.views import View
from mugraph.trace.regions.clipped import infos_at
from mugraph.trace.regions.dynamic import Varies, refusal
from mugraph.trace.regions.size_words import masked_along, other_program
from mugraph.trace.regions.value_names import value_names
from mugraph.units.chains import with_chains
from mugraph.units.growing import identifier_of
from mugraph.units.joining import units
from mugraph.units.lower import NotLowerable, lower
from mugraph.units.ranged_masks import alike, cornered, emptied_at
from mugraph.units.ranged_views import general_views
from mugraph.units.ranged_windows import unplaced, windowed, with_measures
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
                reasons.append(refusal(region.dynamic.ranges, error))
                found.append(PlainCalls(unit.calls))
                divisible += [unit] if is_divisible(unit) or _joins_parts(unit) else []
        if not divisible or len(without) >= len(refused) + CUTS:
            return tuple(found), tuple(dict.fromkeys(reasons))
        without += [frozenset(value for call in unit.calls for value in call.outputs) for unit in divisible]


def values_at(region: Region, made: DynamicSize, size: int | Point) -> dict[int, TensorInfo]:
    """What the region's values are at a size; of several, where the first is this one and the others are the largest,
    or at a size of each."""
    return _infos_at(region.values, made, size)


def views_at(unit: SearchUnit, size: int | Point) -> tuple[tuple[Call, ...], dict[int, TensorInfo]]:
    """The unit's views at a size, as `values_at` takes it, and what they make there."""
    made = unit.general_views
    if made is None:
        return unit.views, dict(unit.view_values)
    return calls_at(unit.views, made, size), _infos_at(unit.view_values, made, size)


def _infos_at(values: Mapping[int, TensorInfo], made: DynamicSize, size: int | Point) -> dict[int, TensorInfo]:
    return infos_at(values, made, made.point(size))


def calls_at(calls: Sequence[Call], made: DynamicSize, size: int | Point) -> tuple[Call, ...]:
    """Some of the region's calls at a size, as `values_at` takes it."""
    return _with_sizes(calls, made, made.point(size), None)


def calls_with(calls: Sequence[Call], made: DynamicSize, called: Mapping[str, str]) -> tuple[Call, ...]:
    """Some of the region's calls at sizes that variables hold."""
    return _with_sizes(calls, made, None, called)


def _with_sizes(
    calls: Sequence[Call], made: DynamicSize, point: Point | None, called: Mapping[str, str] | None
) -> tuple[Call, ...]:
    general = {call.outputs: call for call in made.calls}
    found: list[Call] = []
    for call in calls:
        of = general[call.outputs]
        args = tuple(with_sizes(arg, point, called) for arg in of.args)
        kwargs = {key: with_sizes(arg, point, called) for key, arg in of.kwargs.items()}
        found.append(replace(call, args=args, kwargs=kwargs))
    return tuple(found)


def region_at(region: Region, size: int | Point) -> Region:
    """The region as if its sizes were no ranges but these, as `values_at` takes them; itself where it has none."""
    made = region.dynamic
    if made is None:
        return region
    return replace(region, values=values_at(region, made, size), calls=calls_at(region.calls, made, size), dynamic=None)


def _with_least(region: Region, unit: SearchUnit, made: DynamicSize) -> SearchUnit:
    """The unit with the least sizes of its program's dynamic axes. Raises Varies where its program is another one at
    other sizes than the largest."""
    full, points = unit.program, _points(made)
    others: list[TensorProgram] = []
    views: list[tuple[Point, Region, Mapping[str, View]]] = []
    for point in points:
        small, at = region_at(region, point), Compared(made.ranges, point)
        try:
            lowered = lower(
                calls_at(unit.calls, made, point),
                small.values,
                region.live_ins,
                list(unit.outputs.values()),
                identifier_of(region),
                value_names(region),
                region.names.keys(),
                as_they_lie=True,
                every_mask=True,
                dynamic=made,
                point=point,
            )
        except NotLowerable as error:
            raise Varies(str(error)) from None
        other = lowered.program
        parts = lowered.views.keys()
        differs = (_layouts(full, parts), unit.laid) != (_layouts(other, parts), lowered.laid) or not alike(full, other)
        if full.sizes.keys() != other.sizes.keys() or differs:
            raise Varies(other_program(unit, other, made, at))
        if any(not _same_layout(a, b, full, other) for a, b in zip(full.tensors, other.tensors, strict=True)):
            raise Varies(f"the strides at {at.largest} say nothing of those at {at.here_briefly}")
        others.append(other)
        views.append((point, small, lowered.views))
    full, *others = with_measures((full, *others))
    varying = _varying(full, others, [largest_point(made.ranges), *points])
    program = cornered(windowed(_with_ranges(full, varying, made), others), others)
    if masked := masked_along(unit, program):
        raise Varies(masked)
    if emptied := emptied_at(program, varying, made):
        raise Varies(f"with {Compared(made.ranges, emptied).here} a mask hides all of a row")
    general = general_views(region, unit, views) if unit.views else None
    return replace(unit, program=program, general_views=general, varying=varying)


def _joins_parts(unit: SearchUnit) -> bool:
    """Does it join tensors before it computes? Without that it may be one program at all sizes."""
    entries = [entry_for(call.target) for call in unit.calls]
    joins = [entry is not None and entry.joins for entry in entries]
    computes = [entry is not None and not entry.joins and not entry.shape_only for entry in entries]
    return any(joins) and any(computes)


def _points(made: DynamicSize) -> list[Point]:
    """Sizes below the largest, each of them once by itself, where no axis vanishes: one of size 1 does, so that the
    next size at which there is none stands for it. Where that is the largest itself, as of 1 or 2, the size after it
    says what varies."""
    products = {of for shape in made.shapes.values() for of in shape if of}
    largest = largest_point(made.ranges)
    found: dict[tuple[tuple[str, int], ...], Point] = {}
    for point in made.points:
        sizes = dict(point)
        for name, most in largest.items():
            while sizes[name] < most and any(of.at(sizes) == 1 for of in products if name in of.sizes):
                sizes[name] += 1
        found[tuple(sizes.items())] = sizes
    below = [point for point in found.values() if point != largest]
    unseen = [name for name, most in largest.items() if all(point[name] == most for point in below)]
    return [*below, *({**largest, name: largest[name] + 1} for name in unseen)]


def _varying(full: TensorProgram, others: Sequence[TensorProgram], points: Sequence[Point]) -> dict[str, Product]:
    """The axes whose extents vary, with what they are. Raises Varies."""
    found: dict[str, Product] = {}
    for axis, extent in full.sizes.items():
        extents = [extent, *(other.sizes[axis] for other in others)]
        of = product_of(extents, points)
        if of is None:
            raise Varies(f"axis {axis} has {', '.join(map(str, extents))}, which is no product or sum of sizes")
        if of:
            found[axis] = of
    return found


def _with_ranges(program: TensorProgram, varying: Mapping[str, Product], made: DynamicSize) -> TensorProgram:
    """The program with the least sizes of the axes that vary, and which of them have one size."""
    first, least = made.range.name, {one.name: one.least for one in made.ranges}
    groups: dict[Product, list[str]] = {}
    for axis, of in varying.items():
        groups.setdefault(replace(of, factor=1), []).append(axis)
    order = [one.name for one in leading(made.ranges)]
    ordered = sorted(
        groups,
        key=lambda of: (first not in of.sizes, len(of.names) + len(of.sums), min(map(order.index, of.sizes))),
    )
    sized = {axis: groups[of][0] for of in ordered for axis in groups[of]} if len(groups) > 1 else {}
    return replace(program, least={axis: of.at(least) for axis, of in varying.items()}, sized=sized)


def _layouts(program: TensorProgram, parts: Collection[str]) -> tuple[object, ...]:
    """The tensors but for their strides, which follow from the region's values. parts: tensors that are parts of
    others, which general_views compares"""
    tensors = (*program.tensors, *program.outputs.values())
    sources = ("" if tensor.name in parts else tensor.source for tensor in tensors)
    return tuple(
        (tensor.name, tensor.dims, tensor.dtype, source, tuple(map(unplaced, tensor.windows)))
        for tensor, source in zip(tensors, sources, strict=True)
    )


def _same_layout(tensor: Tensor, other: Tensor, full: TensorProgram, small: TensorProgram) -> bool:
    """Does each axis lie just outside the next one at both sizes, or have one stride at both?"""
    runs, others = tensor.runs(full.sizes), other.runs(small.sizes)
    dense = other_dense = 1
    for at in sorted((at for at, run in enumerate(runs) if run.extent > 1), key=lambda at: runs[at].stride):
        run, seen = runs[at], others[at]
        packed, other_packed = run.stride == dense, seen.stride == other_dense
        if packed != other_packed or (not packed and run.stride != seen.stride):
            return False
        if run.stride:
            dense, other_dense = run.stride * run.extent, seen.stride * seen.extent
    return True
