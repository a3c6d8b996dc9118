"""Parts of tensors that a search unit reads in a region with a range of sizes. Along axes other than the dynamic one
they are the same at every size. Along it they are the first elements, as of a table or a cache, or such as begin where
memory is aligned as that of the whole tensor is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import Argument, Call, Ref, Symbol, TensorInfo, operands
from mugraph.ir.dtypes import itemsize
from mugraph.ir.ranges import FIXED, Compared, DynamicSize, Point, Product, largest_point
from mugraph.ir.region import Region, SearchUnit
from mugraph.ir.sized_arguments import product_in
from mugraph.ops.views import View
from mugraph.trace.regions.dynamic import Varies, general_call, general_info
from mugraph.trace.regions.size_words import said
from mugraph.units.part_views import PartViews

WORD = 16
"""Bytes that kernels read at once, where the address of a tensor is a multiple."""


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
        is_copied = any(one.target == "Tensor.contiguous" and call.outputs[0] in operands(one) for one in unit.views)
        if (
            not is_copied
            and call.target == "Tensor.__getitem__"
            and not _stays_aligned(general, {**region.values, **unit.view_values}, {**made.strides, **strides})
        ):
            raise Varies(f"{said(call)} takes a part along it that begins at another place with each size")
        calls.append(general)
        infos = [unit.view_values[call.outputs[0]], *(other.values[numbers[position]] for other, numbers, _ in seen)]
        shape, stride = general_info(infos, points, f"a part that {said(call)} reads has")
        shapes |= {call.outputs[0]: shape} if any(shape) else {}
        strides |= {call.outputs[0]: stride} if any(stride) else {}
    return replace(made, shapes=shapes, strides=strides, calls=tuple(calls))


def _renumbered(args: Sequence[Argument], own: Mapping[int, int]) -> tuple[Argument, ...]:
    return tuple(Ref(own.get(arg.value, arg.value)) if isinstance(arg, Ref) else arg for arg in args)


def _stays_aligned(call: Call, values: Mapping[int, TensorInfo], strides: Mapping[int, tuple[Product, ...]]) -> bool:
    """Of a part `x[...]`: is the address of its first element a whole number of words from that of x at every size?
    strides: of the values of which they vary"""
    source, index = call.args
    assert isinstance(source, Ref)
    info = values[source.value]
    items = list(index) if isinstance(index, tuple) else [index]
    if items[:1] == [Symbol("...")]:
        items = [slice(None)] * (len(info.shape) - len(items) + 1) + items[1:]
    size = itemsize(info.dtype)
    varying = strides.get(source.value, (FIXED,) * len(info.shape))
    for item, stride, of in zip(items, info.strides, varying, strict=False):
        first: Argument = item.start if isinstance(item, slice) else item
        if (_varies(first) or (of and first)) and (of.factor if of else stride) * size % WORD:
            return False
    return not any(isinstance(item, slice) and _varies(item.step) for item in items)


def _varies(argument: Argument) -> bool:
    return isinstance(argument, Symbol) and product_in(argument) is not None
