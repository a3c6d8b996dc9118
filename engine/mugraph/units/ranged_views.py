"""Parts of tensors that a search unit reads in a region with a range of sizes. Along axes other than the dynamic one
they are the same at every size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import Argument, Call, Ref, Symbol, TensorInfo
from mugraph.ir.ranges import DynamicSize, factor_of
from mugraph.ir.region import Region, SearchUnit
from mugraph.ops.views import View
from mugraph.trace.regions.dynamic import Varies, general_call, general_info
from mugraph.trace.regions.size_words import said
from mugraph.units.part_views import PartViews


def general_views(region: Region, unit: SearchUnit, small: Region, views: Mapping[str, View], size: int) -> DynamicSize:
    """How the unit's views vary with the size. Raises Varies where one is a part along the dynamic axis.

    small: the region at `size`. views: of the unit at that size, by the tensors that are read
    """
    made = region.dynamic
    assert made is not None
    other = PartViews(small)
    numbers = dict.fromkeys(number for view in views.values() for number in other.of(view, unit.calls[0]))
    if len(numbers) != len(unit.views):
        raise Varies(f"{said(unit.calls[0])} reads other parts of tensors with {made.range.name} = {size}")
    own = {number: call.outputs[0] for number, call in zip(numbers, unit.views, strict=True)}
    sizes = (made.range.largest, size)
    calls: list[Call] = []
    shapes: dict[int, tuple[int, ...]] = {}
    strides: dict[int, tuple[int, ...]] = {}
    for number, call in zip(numbers, unit.views, strict=True):
        seen = replace(other.calls[number], args=_renumbered(other.calls[number].args, own), outputs=call.outputs)
        general = general_call((call, seen), sizes, made.range)
        if call.target == "Tensor.__getitem__" and any(map(_varies, general.args)):
            raise Varies(f"{said(call)} takes a part along it")
        calls.append(general)
        infos: Sequence[TensorInfo] = (unit.view_values[call.outputs[0]], other.values[number])
        shape, stride = general_info(infos, sizes, f"a part that {said(call)} reads has")
        shapes |= {call.outputs[0]: shape} if any(shape) else {}
        strides |= {call.outputs[0]: stride} if any(stride) else {}
    return DynamicSize(made.range, shapes, strides, tuple(calls))


def _renumbered(args: Sequence[Argument], own: Mapping[int, int]) -> tuple[Argument, ...]:
    return tuple(Ref(own.get(arg.value, arg.value)) if isinstance(arg, Ref) else arg for arg in args)


def _varies(argument: Argument) -> bool:
    return any(factor_of(symbol) is not None for symbol in _symbols(argument))


def _symbols(argument: Argument) -> Iterator[Symbol]:
    if isinstance(argument, Symbol):
        yield argument
    elif isinstance(argument, tuple):
        for item in argument:
            yield from _symbols(item)
    elif isinstance(argument, slice):
        for part in (argument.start, argument.stop, argument.step):
            yield from _symbols(part)
