"""Parts of tensors that a search unit reads in a region with a range of sizes. Along axes other than the dynamic one
they are the same at every size; along it they are the first elements, as of a table or a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import Argument, Call, Ref, Symbol
from mugraph.ir.ranges import Compared, DynamicSize, Point, Product, largest_point, product_in
from mugraph.ir.region import Region, SearchUnit
from mugraph.ops.views import View
from mugraph.trace.regions.dynamic import Varies, general_call, general_info
from mugraph.trace.regions.size_words import said
from mugraph.units.part_views import PartViews


def general_views(
    region: Region, unit: SearchUnit, views: Sequence[tuple[Point, Region, Mapping[str, View]]]
) -> DynamicSize:
    """How the unit's views vary with the sizes. Raises Varies where one is a part along a dynamic axis.

    views: at other sizes, the region there, and the unit's views by the tensors that are read
    """
    made = region.dynamic
    assert made is not None
    seen: list[tuple[PartViews, tuple[int, ...], Mapping[int, int]]] = []
    for point, small, those in views:
        other = PartViews(small)
        numbers = tuple(dict.fromkeys(number for view in those.values() for number in other.of(view, unit.calls[0])))
        if len(numbers) != len(unit.views):
            at = Compared(made.ranges, point)
            raise Varies(f"{said(unit.calls[0])} reads other parts of tensors with {at.here}")
        own = {number: call.outputs[0] for number, call in zip(numbers, unit.views, strict=True)}
        seen.append((other, numbers, own))
    points = [largest_point(made.ranges), *(point for point, _, _ in views)]
    calls: list[Call] = []
    shapes: dict[int, tuple[Product, ...]] = {}
    strides: dict[int, tuple[Product, ...]] = {}
    for position, call in enumerate(unit.views):
        made_there = [
            replace(
                other.calls[numbers[position]],
                args=_renumbered(other.calls[numbers[position]].args, own),
                outputs=call.outputs,
            )
            for other, numbers, own in seen
        ]
        general = general_call((call, *made_there), points)
        if call.target == "Tensor.__getitem__" and any(map(_begins_elsewhere, general.args)):
            raise Varies(f"{said(call)} takes a part along it that begins at another place with each size")
        calls.append(general)
        infos = [unit.view_values[call.outputs[0]], *(other.values[numbers[position]] for other, numbers, _ in seen)]
        shape, stride = general_info(infos, points, f"a part that {said(call)} reads has")
        shapes |= {call.outputs[0]: shape} if any(shape) else {}
        strides |= {call.outputs[0]: stride} if any(stride) else {}
    return DynamicSize(made.range, shapes, strides, tuple(calls), made.others)


def _renumbered(args: Sequence[Argument], own: Mapping[int, int]) -> tuple[Argument, ...]:
    return tuple(Ref(own.get(arg.value, arg.value)) if isinstance(arg, Ref) else arg for arg in args)


def _begins_elsewhere(argument: Argument) -> bool:
    """Of an index: does the address of its first element vary, or its step? How memory is aligned there would as
    well."""
    if isinstance(argument, tuple):
        return any(map(_begins_elsewhere, argument))
    if isinstance(argument, slice):
        ends: tuple[Argument, ...] = (argument.start, argument.step)
        return any(map(_begins_elsewhere, ends))
    return isinstance(argument, Symbol) and product_in(argument) is not None
