"""Several axes as one dimension of a product's tile: Reshape and Repeat of Mirage v1 (Figure 4c).

A tensor core takes tiles of two dimensions. Where the rows of a product run along several named axes, as those of
grouped-query attention do along a group's heads and their queries, a block that holds more than one element of each
*packs* them: the index of its row counts them all, and what lacks one of the axes stays the same along it (keys and
values are not repeated in memory). Which axes are packed follows from the tiles, as imap, omap and fmap do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind, Op

Packs = tuple[tuple[str, ...], ...]
"""Axes that are one dimension together, outermost first (`ordered`). Each axis is in one at most."""


def lanes(block: BlockGraph, schedule: Schedule, axis: str) -> int:
    """Elements of the axis a tile holds, padded to a power of two."""
    size = block.sizes[axis]
    return 1 << (min(schedule.tile(axis, size), size) - 1).bit_length()


def wide_axes(block: BlockGraph, schedule: Schedule) -> frozenset[str]:
    """The axes of which a tile holds more than one element."""
    return frozenset(axis for axis in block.sizes if lanes(block, schedule, axis) > 1)


def packs(block: BlockGraph, wide: Collection[str]) -> Packs:
    """Groups of wide axes that are on one side of a product together. Groups that share an axis are one group."""
    groups: dict[str, set[str]] = {}
    for sides in _products(block, wide):
        for side in sides:
            merged = set(side).union(*(groups.get(axis, {axis}) for axis in side))
            groups.update(dict.fromkeys(merged, merged))
    found = {axis: ordered(block, group) for axis, group in groups.items() if len(group) > 1}
    return tuple(dict.fromkeys(found[axis] for axis in block.sizes if axis in found))


def ordered(block: BlockGraph, group: Collection[str]) -> tuple[str, ...]:
    """The axes in the memory order of the first tensor that has all of them, so that neighbours in the dimension are
    neighbours there; in the block graph's order where none has."""
    axes = [axis for axis in block.sizes if axis in group]
    for tensor in block.tensors:
        if set(axes) <= set(tensor.axes):
            strides = tensor.axis_strides(block.sizes)
            return tuple(sorted(axes, key=lambda axis: -abs(strides[axis])))
    return tuple(axes)


def pack_violations(block: BlockGraph, wide: Collection[str]) -> Iterator[str]:
    """What keeps the wide axes of a side from being one dimension.

    A value may lack some of a pack's axes: its tile repeats along them. So no operator may reduce a part of a pack, and
    none may store one.
    """
    found = packs(block, wide)
    for pack in found:
        name = "*".join(pack)
        for axis in pack:
            if axis in block.loop_axes:
                yield f"axis {axis} is looped, so {name} is no dimension of a product"
        for op in block.ops:
            over = set(op.over if op.kind.reduces else ()).intersection(pack)
            if over and over != set(pack):
                yield f"{op.name} reduces {'*'.join(sorted(over))} of {name}, one dimension of a product"
            held = set(op.axes).intersection(pack)
            if op.kind is Kind.STORE and held and held != set(pack):
                yield f"{op.name} stores {'*'.join(sorted(held))} of {name}, one dimension of a product"
    if found:
        dimension = {axis: number for number, pack in enumerate(found) for axis in pack}
        for sides in _products(block, wide):
            used = [{dimension[axis] for axis in side if axis in dimension} for side in sides]
            if sum(len(one) for one in used) > len(set[int]().union(*used)):
                yield f"two sides of a product have axes of {' and '.join('*'.join(pack) for pack in found)}"


def packed(block: BlockGraph, schedule: Schedule) -> Packs:
    """The packs of a schedule that keeps the rules."""
    return packs(block, wide_axes(block, schedule))


def held(axes: Collection[str], found: Packs) -> tuple[str, ...]:
    """All axes of the tile of a value with these axes: with one axis of a pack the tile has the whole pack."""
    present = dict.fromkeys(axes)
    for pack in found:
        if any(axis in present for axis in pack):
            present.update(dict.fromkeys(pack))
    return tuple(present)


def reshaped(extents: Mapping[str, int], found: Packs) -> list[int]:
    """A tile's extents by axis; those of a pack are multiplied into one, in the place of the pack's first axis."""
    of = {axis: pack for pack in found for axis in pack}
    groups = dict.fromkeys(of.get(axis, (axis,)) for axis in extents)
    return [prod(extents[axis] for axis in group if axis in extents) for group in groups]


def sides_of(op: Op, axes: Mapping[str, frozenset[str]], wide: Collection[str]) -> tuple[frozenset[str], ...]:
    """The wide axes of a DOT's rows, columns, depth and batch. axes: of every value"""
    left, right = (axes[name].intersection(wide) for name in op.inputs)
    over = frozenset(op.over)
    return left - right - over, right - left - over, over.intersection(wide), (left & right) - over


def _products(block: BlockGraph, wide: Collection[str]) -> Iterator[tuple[frozenset[str], ...]]:
    """Rows, columns and depth of every dot that a tensor core computes."""
    axes = {op.name: frozenset(op.axes) for op in block.ops}
    for op in block.ops:
        if op.kind.contracts and len(op.inputs) == 2 and all(name in axes for name in op.inputs):
            *sides, _ = sides_of(op, axes, wide)
            if all(sides):
                yield tuple(sides)
