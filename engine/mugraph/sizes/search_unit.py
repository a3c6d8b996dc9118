"""A search unit at one size of a range: its calls there, and the times that its kernels and PyTorch are expected to
take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.library import library_call
from mugraph.ir.parts import parts_of
from mugraph.ir.program import TensorProgram
from mugraph.ir.ranges import Point
from mugraph.ir.region import Region, SearchUnit
from mugraph.ir.transforms.resizing import resize_block
from mugraph.search.schedules.cost import estimate_call_us, estimate_library_us, estimate_us
from mugraph.sizes.in_parts import sizes_with
from mugraph.sizes.table import at_sizes
from mugraph.sizes.timing import first_sizes
from mugraph.targets import Target
from mugraph.units.ranged import calls_at, values_at, views_at


def unit_at(unit: SearchUnit, region: Region, size: int | Point) -> SearchUnit:
    """The unit as if the region had this size and no range; the unit itself if the region has none. Of several sizes,
    one is that of the first range while the others are the largest."""
    made = region.dynamic
    if made is None:
        return unit
    point = made.point(size)
    full = unit.program
    sizes = {axis: unit.varying[axis].at(point) if axis in unit.varying else n for axis, n in full.sizes.items()}
    program, _ = at_sizes(full, [], sizes)
    views, made_by_views = views_at(unit, point)
    calls, values = calls_at(unit.calls, made, point), {**values_at(region, made, point), **made_by_views}
    viewed = {value: values[value] for value in unit.viewed}
    known = {value: values[value] for value in unit.values if value in values}
    return replace(
        unit,
        program=program,
        calls=calls,
        views=views,
        view_values=made_by_views,
        viewed=viewed,
        values=known,
        general_views=None,
        apart=(),
    )


def at_other_sizes(unit: SearchUnit, region: Region) -> tuple[SearchUnit, ...]:
    """At those sizes of the region's range, beside the largest, that its kernels are looked at for; none without a
    range."""
    if region.dynamic is None:
        return ()
    return tuple(unit_at(unit, region, at) for at in first_sizes(region.dynamic.range)[1:])


def estimates_at(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]], source: KernelSource, target: Target
) -> tuple[float, float]:
    """Estimated microseconds of the kernels, each with the schedule that its launcher takes for the size, and of
    PyTorch operator by operator.

    program:         at the size
    kernels, source: at the largest size
    """
    for one in source.smaller:
        if program.sizes[one.axis] <= one.largest:
            return estimates_at(program, one.kernels, one.source, target)
    total, every = 0.0, dict(program.sizes)
    for (full, own), made in zip(kernels, source.kernels, strict=True):
        size = every.get(made.by, full.sizes.get(made.by, 0))
        schedule = next((launch.schedule for launch in made.launches if size <= launch.largest), own)
        parts = parts_of(full, program, made.divided)
        if parts is not None:
            every = sizes_with(parts, every, schedule.part)
        sizes = {axis: every.get(axis, n) for axis, n in full.sizes.items()}
        varying = {axis for axis, n in sizes.items() if n != full.sizes[axis]}
        block = resize_block(full, sizes, varying)
        if own.library:
            call = library_call(block)
            total += estimate_call_us(call, target) if call is not None else float("inf")
        else:
            total += estimate_us(block, schedule, target)
    return total, estimate_library_us(program, target)
