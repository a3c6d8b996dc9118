"""Sizes small enough to test a graph at.

Every part of an axis (tile, number of tiles) is at least 2 (size 1 lets wrong graphs through), and the two assignments
differ in every part, so that no number of iterations passes for a constant of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.ir.windows import resized, room
from mugraph.verification.evaluate import Malformed
from mugraph.verification.mask_sizes import MaskGroup, mask_groups
from mugraph.verification.relations import Relations

MANY = 6
"""Axes with tiles: of so many none has four tiles, or a convolution would take seconds."""
MOST_WHOLE = 5
"""Elements of an axis without tiles."""
MOST_ELEMENTS = 1 << 17
"""Of a value of the program: where it had more, axes have fewer. Pooled maps have many axes."""
_PLAIN = (2, 3), (3, 5)
"""(tile, size) at the two assignments, of an axis that only tells elements apart, where there are too many of them. No
graph says how many blocks there are along it: two do, the last one cut short."""
_MOST_CHANGES = 100
"""Times that axes are made longer."""
_MOST_LENGTHENED = 12
"""Elements that the axes of a mask are made longer by, at most."""


@dataclass(frozen=True)
class Assignment:
    """sizes: every axis of the program and of all block graphs. tiles: grid or loop axis -> elements in a tile."""

    sizes: Mapping[str, int]
    tiles: Mapping[str, int]

    def schedule(self, block: BlockGraph, grid: Sequence[str]) -> Schedule:
        return Schedule(
            grid=tuple((axis, self.tiles[axis]) for axis in grid),
            loops={axis: self.tiles[axis] for axis in block.loop_axes},
        )


def grid_axes(block: BlockGraph) -> tuple[str, ...]:
    """Axes a topology can be parallel over: in an output, neither looped nor reduced (Mirage's omap must be able to put
    the blocks' tiles together; an output without the axis is stored by the first of the blocks along it)."""
    reduced = {axis for op in block.ops if op.kind.reduces or op.kind.scans for axis in op.over}
    stored = dict.fromkeys(axis for tensor in block.outputs for axis in tensor.axes)
    return tuple(axis for axis in stored if axis not in reduced and axis not in block.loop_axes)


def assignments(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Sequence[str]]], single: Collection[str] = ()
) -> tuple[Assignment, Assignment]:
    """Two small assignments for a program and the block graphs (each with its grid axes) that compute it.

    single: axes of which a block or an iteration takes one element, and is never to take more

    Raises Malformed when a tensor's dimensions are cut into axes in two ways that no assignment fits.
    """
    blocks = [block for block, _ in kernels]
    relations = Relations(program, blocks)
    full, equal, products = relations.sizes, relations.equal, relations.products
    parted = {equal.get(a, a) for block, grid in kernels for a in (*grid, *block.loop_axes)}
    alone = {equal.get(axis, axis) for axis in single}
    free = sorted({equal.get(axis, axis) for axis in full} - products.keys())
    small, large = _parts(free, parted, alone, MOST_WHOLE)
    if _elements(program, _complete(full, large, equal, products).sizes) > MOST_ELEMENTS:
        small, large = _parts(free, parted, alone, 3)
    if _elements(program, _complete(full, large, equal, products).sizes) > MOST_ELEMENTS:
        for axis in _plain(program, blocks, relations) & parted - alone:
            small[axis], large[axis] = _PLAIN
    tensors = [*program.tensors, *(tensor for block, _ in kernels for tensor in block.tensors)]
    masks = mask_groups(program, blocks)
    found: list[Assignment] = []
    for chosen in (small, large):
        assignment = _complete(full, chosen, equal, products)
        for _ in range(_MOST_CHANGES):
            if not (
                _widened(tensors, full, assignment, chosen, equal) or _lengthened(masks, full, chosen, equal, products)
            ):
                break
            assignment = _complete(full, chosen, equal, products)
        else:
            raise Malformed("no small sizes were found that its windows and masks can be tested at")
        found.append(assignment)
    return found[0], found[1]


def _plain(program: TensorProgram, blocks: Sequence[BlockGraph], relations: Relations) -> set[str]:
    """Axes that do nothing but tell elements apart: nothing reduces or loops over them, no mask knows their places,
    and they are no part of another axis."""
    ops = [op for graph in (program.ops, *(block.ops for block in blocks)) for op in graph]
    used = {axis for op in ops for axis in (*op.over, *op.rows, *op.columns)}
    used.update(axis for block in blocks for axis in block.loop_axes)
    for axis, parts in relations.products.items():
        used.update((axis, *parts))
    equal = relations.equal
    return {equal.get(axis, axis) for axis in relations.sizes} - {equal.get(axis, axis) for axis in used}


def _parts(
    axes: Sequence[str], parted: Collection[str], single: Collection[str], most: int
) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
    """(tile, size) of each axis, twice. most: elements of an axis without tiles"""
    small: dict[str, tuple[int, int]] = {}
    large: dict[str, tuple[int, int]] = {}
    lengths = (10, 8) if len(parted) < MANY and most == MOST_WHOLE else (7, 8)
    for number, axis in enumerate(axes):
        if axis in single and axis in parted:
            small[axis], large[axis] = (1, 2), (1, 3)
        elif axis in parted:
            # (tile, size): 2 + 2, and three or four tiles of 3 with the last one cut short.
            small[axis], large[axis] = (2, 4), (3, lengths[number % 2])
        else:
            one, two = (2, most) if number % 2 else (3, most - 1)
            small[axis], large[axis] = (one, one), (two, two)
    return small, large


def _elements(program: TensorProgram, sizes: Sizes) -> int:
    """Of the largest value."""
    return max(prod(sizes[axis] for axis in op.axes) for op in program.ops)


def _lengthened(
    masks: Iterable[MaskGroup],
    full: Sizes,
    chosen: dict[str, tuple[int, int]],
    equal: Mapping[str, str],
    products: Mapping[str, tuple[str, ...]],
) -> bool:
    """Makes the axes longer of masks that are uniform at these sizes, are equal to another mask, or leave a row
    empty. Whether there were any. As little as is enough is added to the outermost axis of their rows and columns.
    Two masks with diagonals far from any corner may stay equal; full sizes tell them apart. Raises Malformed for a
    mask that stays uniform."""

    def outermost(axes: Sequence[str]) -> str | None:
        parts = [part for axis in axes for part in products.get(equal.get(axis, axis), (axis,))]
        return next((equal.get(part, part) for part in parts if equal.get(part, part) in chosen), None)

    def longer(group: MaskGroup, is_enough: Callable[[Sizes], bool]) -> dict[str, tuple[int, int]] | None:
        """The least change."""
        rows, columns = outermost(group.rows), outermost(group.columns)
        for more in range(1, _MOST_LENGTHENED):
            for of_rows in range(more + 1):
                trial = dict(chosen)
                for axis, extra in ((rows, of_rows), (columns, more - of_rows)):
                    if axis is not None:
                        trial[axis] = (trial[axis][0], trial[axis][1] + extra)
                if trial != chosen and is_enough(_complete(full, trial, equal, products).sizes):
                    return trial
        return None

    for group in masks:
        now = _complete(full, chosen, equal, products).sizes
        for wish in (group.keeps_rows, group.is_apart, group.is_cut):  # the strongest that can be
            if wish(now):
                break
            found = longer(group, wish)
            if found is not None:
                chosen.update(found)
                return True
        else:
            uniform = group.uniform(now)
            raise Malformed(f"{uniform} has ones and zeros, but one of them alone at every size it could be tested at")
    return False


def _widened(
    tensors: Iterable[Tensor],
    full: Sizes,
    found: Assignment,
    chosen: dict[str, tuple[int, int]],
    equal: Mapping[str, str],
) -> bool:
    """Adds positions to a window whose pad is as large as what it reads. Whether there was one."""
    for tensor in tensors:
        for window in tensor.windows:
            axes = tensor.dims[window.dim]
            window = resized(window, axes, full, found.sizes)
            needed = room(window, axes, found.sizes)
            outer = equal.get(needed[0], needed[0]) if needed else ""
            if needed and outer in chosen:
                chosen[outer] = (chosen[outer][0], needed[1])
                return True
            if window.extent(axes, found.sizes) < 1:
                raise Malformed(f"{tensor.name} is read through a window that leaves nothing of it")
    return False


def _complete(
    full: Sizes,
    chosen: Mapping[str, tuple[int, int]],
    equal: Mapping[str, str],
    products: Mapping[str, tuple[str, ...]],
) -> Assignment:
    sizes = {axis: size for axis, (_, size) in chosen.items()}
    waiting = dict(products)
    while waiting:
        ready = [axis for axis, parts in waiting.items() if all(equal.get(p, p) in sizes for p in parts)]
        if not ready:
            raise Malformed(f"the sizes of {sorted(waiting)} depend on each other")
        for axis in ready:
            sizes[axis] = prod(sizes[equal.get(part, part)] for part in waiting.pop(axis))
    tiles = {axis: chosen[axis][0] if axis in chosen else ceil(size / 2) for axis, size in sizes.items()}
    return Assignment(
        {axis: sizes[equal.get(axis, axis)] for axis in full}, {axis: tiles[equal.get(axis, axis)] for axis in full}
    )
