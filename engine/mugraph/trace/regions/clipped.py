"""Ranges that end where a tensor is full: at that one size its memory looks as if it were as long as the size.

A cache of 32 places of which the first `n` are attended has one stride at every n. At n = 32 it is also what a tensor
of n places would have, and a kernel made from that size would take the one for the other. So the region is made from
the size before, and the last one is left to PyTorch. So it is with a table of which the first `n` rows are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import TensorInfo, operands
from mugraph.ir.ranges import DynamicSize, Point, Product, SizeRange, largest_point
from mugraph.ir.region import Region
from mugraph.ir.sized_arguments import with_sizes
from mugraph.trace.regions.growing_masks import resized_mask

_LEAST_SIZES = 2
"""A range has at least so many."""


def clipped(region: Region, samples: Sequence[Region]) -> Region:
    """The region without the largest size of a range, where that alone tells another layout than the samples do; else
    the region itself."""
    made = region.dynamic
    if made is None or not (_misleads(region.values, samples) or _is_whole(region, samples)):
        return region
    for one in made.ranges:
        shorter = replace(one, largest=one.largest - 1)
        if shorter.largest - shorter.least + 1 < _LEAST_SIZES:
            continue
        found = with_largest(region, made, one, shorter)
        if not (_misleads(found.values, samples) or _is_whole(found, samples)):
            return found
    return region


def with_largest(region: Region, made: DynamicSize, old: SizeRange, new: SizeRange) -> Region:
    """The region with another largest size of one range."""
    ranges = [new if one == old else one for one in made.ranges]
    point = largest_point(ranges)
    values = infos_at(region.values, made, point)
    calls = tuple(
        replace(
            call,
            args=tuple(with_sizes(argument, point, None) for argument in of.args),
            kwargs={key: with_sizes(argument, point, None) for key, argument in of.kwargs.items()},
        )
        for call, of in zip(region.calls, made.calls, strict=True)
    )
    first, *others = ranges
    return replace(region, values=values, calls=calls, dynamic=replace(made, range=first, others=tuple(others)))


def infos_at(values: Mapping[int, TensorInfo], made: DynamicSize, point: Point) -> dict[int, TensorInfo]:
    """What values of a region are at these sizes."""
    found: dict[int, TensorInfo] = {}
    for value, info in values.items():
        shape, strides = (
            _at(numbers, products.get(value), point)
            for numbers, products in ((info.shape, made.shapes), (info.strides, made.strides))
        )
        found[value] = replace(info, shape=shape, strides=strides, triangle=resized_mask(info, shape))
    return found


def _at(numbers: tuple[int, ...], products: tuple[Product, ...] | None, point: Point) -> tuple[int, ...]:
    if products is None:
        return numbers
    return tuple(of.at(point) if of else number for number, of in zip(numbers, products, strict=True))


def _misleads(values: Mapping[int, TensorInfo], samples: Sequence[Region]) -> bool:
    """Does a dimension lie just outside the next one here, and at no other size?"""
    return any(
        _packed(info, size) != _packed(sample.values[value], size)
        for value, info in values.items()
        for sample in samples
        if (size := _longer(info, sample.values[value]))
    )


def _is_whole(region: Region, samples: Sequence[Region]) -> bool:
    """Is a part taken of a tensor that is all of it here, and at no other size?"""
    taken = [(operands(call), call.outputs[0]) for call in region.calls if call.target == "Tensor.__getitem__"]
    parts = [(given[0], part) for given, part in taken if len(given) == 1]  # rows that an index names are no part
    return any(
        region.values[whole].shape == region.values[part].shape
        and sample.values[whole].shape != sample.values[part].shape
        for whole, part in parts
        for sample in samples
        if len(region.values[whole].shape) == len(region.values[part].shape)
    )


def _longer(info: TensorInfo, other: TensorInfo) -> frozenset[int]:
    """Dimensions of which both have more than one element, if some size differs."""
    if info.shape == other.shape:
        return frozenset()
    return frozenset(at for at, (n, m) in enumerate(zip(info.shape, other.shape, strict=True)) if n > 1 and m > 1)


def _packed(info: TensorInfo, dims: frozenset[int]) -> dict[int, bool]:
    """Which of these dimensions lie just outside the next one in memory."""
    found, dense = dict[int, bool](), 1
    longer = (at for at, size in enumerate(info.shape) if size > 1)
    for at in sorted(longer, key=lambda at: abs(info.strides[at])):
        if at in dims:
            found[at] = info.strides[at] == dense
        if info.strides[at]:
            dense = info.strides[at] * info.shape[at]
    return found
