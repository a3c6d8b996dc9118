"""A candidate at sizes small enough for Triton's interpreter, with the same structure.

Every grid axis keeps at most two thread blocks, every loop two iterations, an uneven tail stays uneven, and no axis
that was larger than 1 becomes 1 (size 1 lets wrong graphs through).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import lcm, prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.masks import by_sides, keep_filled, resized_all
from mugraph.ir.parts import with_parts_at
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize_tensor
from mugraph.ir.windows import resized, room

WHOLE = 64
"""Largest extent an axis keeps that no grid or loop divides."""


def reduced(
    block: BlockGraph, schedule: Schedule, *, largest_tile: int = 32, whole: int = WHOLE
) -> tuple[BlockGraph, Schedule]:
    """The block graph and schedule with smaller sizes.

    largest_tile: tiles above it shrink to it; at least 16, the least side of a product
    whole:        whole axes above it shrink to it, or to a little less when they are no power of two

    Constants stay as they are: a mean's divisor is then no longer the size of its axis, for the reference and the
    kernel alike (verify.weights makes up for it). Strides change as a program's do (resizing.py): both are about the
    same memory.
    """
    return reduced_kernels([(block, schedule)], largest_tile=largest_tile, whole=whole)[0]


def reduced_kernels(
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    *,
    largest_tile: int = 32,
    whole: int = WHOLE,
    together: Sequence[Collection[str]] = (),
    kept: Collection[str] = (),
) -> list[tuple[BlockGraph, Schedule]]:
    """As `reduced`, for kernels that run one after the other: an axis has one size in all of them, the largest that one
    of them needs to keep two of its tiles (and the whole axis that another one sums is cut down to that).

    together: axes that are of one size, and stay so
    kept: axes that keep their sizes"""
    if largest_tile < 16:
        raise ValueError(f"largest_tile is {largest_tile}; products need 16.")
    tiled: dict[str, int] = {}
    held: dict[str, int] = {}
    for block, schedule in kernels:
        for axis, size in block.sizes.items():
            tile = _tile(schedule, axis)
            if tile is None or tile >= size:
                held[axis] = _whole(size, whole)
            else:
                tiled[axis] = max(tiled.get(axis, 0), _tiled(size, tile, min(tile, largest_tile)))
    sizes = {**held, **tiled, **{axis: n for block, _ in kernels for axis, n in block.sizes.items() if axis in kept}}
    for alike in together:
        sizes.update(dict.fromkeys(known := sizes.keys() & alike, max((sizes[axis] for axis in known), default=0)))
    for block, _ in kernels:
        _keep_filled(sizes, block)
    _join(sizes, kernels)
    read = [(block, tensor, window) for block, _ in kernels for tensor in block.tensors for window in tensor.windows]
    while True:
        before = dict(sizes)
        for block, tensor, window in read:
            axes = tensor.dims[window.dim]
            small = resized(window, axes, block.sizes, sizes)
            sizes.update([longer] if (longer := room(small, axes, sizes)) else [])
        if sizes == before:
            break
    return [_at(block, schedule, {a: sizes[a] for a in block.sizes}, largest_tile) for block, schedule in kernels]


def _keep_filled(sizes: dict[str, int], block: BlockGraph) -> None:
    """Where several masks, a window's two, would leave nothing of a row: both sides become as long, or stay as they
    are."""
    for sides, masks in by_sides(block.ops).items():
        axes = [axis for side in sides for axis in side]
        if len(masks) < 2 or keep_filled(masks, sides, block.sizes, sizes):
            continue
        if all(len(side) == 1 for side in sides):
            alike = dict.fromkeys(axes, max(sizes[axis] for axis in axes))
            if keep_filled(masks, sides, block.sizes, {**sizes, **alike}):
                sizes.update(alike)
                continue
        sizes.update({axis: block.sizes[axis] for axis in axes})


def _join(sizes: dict[str, int], kernels: Sequence[tuple[BlockGraph, Schedule]]) -> None:
    """Where kernels cut one dimension into axes in different ways, they are as long: the last axis of each grows."""
    ways: dict[tuple[str, int], set[tuple[str, ...]]] = {}
    for block, _ in kernels:
        for tensor in block.tensors:
            for position, dim in enumerate(tensor.dims):
                if dim:
                    ways.setdefault((tensor.name, position), set()).add(dim)
    different = [sorted(cuts) for cuts in ways.values() if len(cuts) > 1]
    for _ in range(len(different) + 1):  # an axis that grows may be in another dimension too
        for cuts in different:
            before = [prod(sizes[axis] for axis in cut[:-1]) for cut in cuts]
            longest = max(prod(sizes[axis] for axis in cut) for cut in cuts)
            length = -(-longest // lcm(*before)) * lcm(*before)
            for cut, others in zip(cuts, before, strict=True):
                sizes[cut[-1]] = length // others


def program_sizes(program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]]) -> dict[str, int]:
    """Sizes for the program that kernels were made of, from theirs: an axis that they have in parts is as large as the
    parts together."""
    known = {axis: size for block, _ in kernels for axis, size in block.sizes.items()}
    sizes = {axis: known[axis] for axis in program.sizes if axis in known}
    tensors = {tensor.name: (tensor, block) for block, _ in kernels for tensor in block.tensors}
    for whole in program.tensors:
        if whole.name not in tensors:
            continue
        cut, block = tensors[whole.name]
        for dim, parts in zip(whole.dims, cut.dims, strict=True):
            extent = prod(block.sizes[axis] for axis in parts)
            for axis in [axis for axis in dim if axis not in sizes]:
                sizes[axis] = extent // prod(sizes[other] for other in dim if other != axis)
    return sizes


def _tile(schedule: Schedule, axis: str) -> int | None:
    return dict(schedule.grid).get(axis, schedule.loops.get(axis))


def _at(
    block: BlockGraph, schedule: Schedule, sizes: Mapping[str, int], largest_tile: int
) -> tuple[BlockGraph, Schedule]:
    tiles: dict[str, int] = {}
    for axis, size in block.sizes.items():
        tile = _tile(schedule, axis)
        tiles[axis] = sizes[axis] if tile is None or tile >= size else min(tile, largest_tile)
    tensors = tuple(resize_tensor(tensor, block.sizes, sizes) for tensor in block.tensors)
    fewer = replace(
        schedule,
        grid=tuple((axis, tiles.get(axis, tile)) for axis, tile in schedule.grid),
        loops={axis: tiles.get(axis, tile) for axis, tile in schedule.loops.items()},
    )
    small = replace(block, sizes=sizes, tensors=tensors, ops=resized_all(block.ops, block.sizes, sizes))
    return small, with_parts_at(fewer, small)


def _whole(size: int, limit: int) -> int:
    if size <= limit:
        return size
    return limit if size & (size - 1) == 0 else limit - limit // 4


def _tiled(size: int, tile: int, smaller: int) -> int:
    """Two tiles, the second one partly empty if the last one was."""
    tail = size % tile
    if not tail:
        return 2 * smaller
    return smaller + max(1, min(smaller - 1, tail * smaller // tile))
