"""Masks: triangles of ones in a tensor of zeros, known from their axes alone (torch.tril and torch.triu of ones).

The element at row r and column c is 1 where c <= r + diagonal. A causal mask has queries as rows, keys as columns and
diagonal 0; the complement of one, or an upper triangle, is a mask with rows and columns exchanged. Rows and columns are
counted over one axis or several, outermost first, so that a mask survives the splitting of an axis.

A mask whose axes vary says from which corner its diagonal keeps its distance: the "first" one, where a query at place r
sees the keys up to place r, or the "last" one, where the last query sees the last key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import prod
from typing import cast

from mugraph.ir.calls import Corner
from mugraph.ir.ops import Kind, Op

_NEAR = 2
"""Distance from a corner up to which a diagonal keeps its distance at other sizes."""


def diagonal(op: Op) -> int:
    return int(op.value)


def extents(op: Op, sizes: Mapping[str, int]) -> tuple[int, int]:
    """How many rows and columns the mask has."""
    return prod(sizes[axis] for axis in op.rows), prod(sizes[axis] for axis in op.columns)


def is_uniform(op: Op, sizes: Mapping[str, int]) -> bool:
    """Is the mask nothing but ones, or nothing but zeros?"""
    rows, columns = extents(op, sizes)
    return not -rows < diagonal(op) <= columns - 2


def is_causal(op: Op, sizes: Mapping[str, int], varying: Collection[str]) -> bool:
    """Is it the same mask whatever the sizes of these axes are: as many rows as columns, which vary together, each row
    with a one up to its own place?"""
    if diagonal(op) != 0 or len(op.rows) != 1 or len(op.columns) != 1:
        return False
    rows, columns = extents(op, sizes)
    return rows == columns and {*op.rows, *op.columns} <= set(varying)


def corner(op: Op) -> Corner:
    """From which its diagonal keeps its distance at all sizes; "" where nothing says so."""
    return cast("Corner", op.fn)


def kept(number: int, of: Corner, shape: tuple[int, int], new_shape: tuple[int, int]) -> int:
    """The diagonal of a mask of another shape, which is as far from this corner."""
    if of != "last":
        return number
    return number + (new_shape[1] - new_shape[0]) - (shape[1] - shape[0])


def may_vary(op: Op, sizes: Mapping[str, int], together: Collection[Collection[str]]) -> bool:
    """Is it known what the mask is at every size of its axes? together: axes that vary, by what they vary with"""
    if corner(op):
        return len(op.rows) <= 1 and len(op.columns) <= 1
    return any(is_causal(op, sizes, axes) for axes in together)


def complement(shape: tuple[int, int], number: int) -> tuple[tuple[int, int], int]:
    """Extents and diagonal of the mask that is 1 where one of this shape and diagonal is 0: rows and columns are
    exchanged."""
    return (shape[1], shape[0]), -number - 1


def at_sizes(op: Op, old: Mapping[str, int], new: Mapping[str, int]) -> Op:
    """The mask that the program has at other sizes of axes that vary."""
    if op.kind is not Kind.MASK or not corner(op):
        return op
    return replace(op, value=float(kept(diagonal(op), corner(op), extents(op, old), extents(op, new))))


def resized(op: Op, old: Mapping[str, int], new: Mapping[str, int]) -> Op:
    """The mask at other sizes, for a test of a graph at any: it starts as far from the corner it is nearest to, the
    first row and column or the last ones, as it did; a diagonal far from both keeps its place in proportion. A mask
    without an empty row keeps that, and of a mask and its complement one stays the other's complement.

    At very small sizes a mask may become uniform: verification/sizes.py chooses sizes so that it does not."""
    if op.kind is not Kind.MASK:
        return op
    shape, new_shape, number = extents(op, old), extents(op, new), diagonal(op)
    if number >= 0:
        return replace(op, value=float(_moved(number, shape, new_shape)))
    turned, other = complement(shape, number)
    return replace(op, value=float(-_moved(other, turned, (new_shape[1], new_shape[0])) - 1))


def _moved(number: int, shape: tuple[int, int], new_shape: tuple[int, int]) -> int:
    """A diagonal that is not negative, of a mask of another shape."""
    (rows, columns), (new_rows, new_columns) = shape, new_shape
    corner, new_corner = 0, 0
    if abs(number - (columns - rows)) < number:
        corner, new_corner = columns - rows, new_columns - new_rows
    distance = number - corner
    if abs(distance) > _NEAR:
        scaled = _NEAR + 1 + abs(distance) * new_columns // (2 * columns)
        distance = scaled if distance > 0 else -scaled
    moved = max(0, new_corner, -distance) + distance
    return moved if number <= columns - 2 else max(moved, new_columns - 1)  # nothing but ones stays that


Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""The axes of a mask's rows and columns, or of its columns and rows."""


def by_sides(ops: Sequence[Op]) -> dict[Sides, list[Op]]:
    """The masks over the same rows and columns, or columns and rows."""
    found: dict[Sides, list[Op]] = {}
    for op in ops:
        if op.kind is Kind.MASK:
            found.setdefault((min(op.rows, op.columns), max(op.rows, op.columns)), []).append(op)
    return found


def filled(masks: Sequence[Op], sides: Sides, sizes: Mapping[str, int]) -> tuple[bool, bool]:
    """Has each row a one in the product of the masks; has each column? They leave the places where column - row is from
    `low` to `high`."""
    rows, columns = (prod(sizes[axis] for axis in axes) for axes in sides)
    low = max((-diagonal(op) for op in masks if op.rows != sides[0]), default=-rows)
    high = min((diagonal(op) for op in masks if op.rows == sides[0]), default=columns)
    each_row = low <= high and high >= 0 and rows - 1 + low <= columns - 1
    each_column = low <= high and low <= 0 and columns - 1 - high <= rows - 1
    return each_row, each_column


def empties(ops: Sequence[Op], old: Mapping[str, int], new: Mapping[str, int], varying: AbstractSet[str]) -> bool:
    """Do masks together hide all of a row that is summed at the new sizes, of which they leave something at the old
    ones? A softmax along it is then undefined. varying: as of `resized_all`"""
    summed = {axis for op in ops for axis in op.over}
    for sides, masks in by_sides(ops).items():
        if varying.isdisjoint((*sides[0], *sides[1])):
            continue
        before, after = filled(masks, sides, old), filled(resized_all(masks, old, new, varying), sides, new)
        over = summed.issuperset(sides[1]), summed.issuperset(sides[0])
        if any(then and not now and runs for then, now, runs in zip(before, after, over, strict=True)):
            return True
    return False


def keep_filled(masks: Sequence[Op], sides: Sides, old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    """Have rows and columns that have a one at the old sizes one at the new ones, too?"""
    small = [resized(op, old, new) for op in masks]
    before, after = filled(masks, sides, old), filled(small, sides, new)
    return all(now or not then for then, now in zip(before, after, strict=True))


def resized_all(
    ops: Sequence[Op], old: Mapping[str, int], new: Mapping[str, int], varying: AbstractSet[str] = frozenset()
) -> tuple[Op, ...]:
    """The operators at other sizes: nothing but masks depends on them. varying: axes whose sizes are known at run time
    only, of which the new ones are some"""
    if varying:
        return tuple(at_sizes(op, old, new) if corner(op) else resized(op, old, new) for op in ops)
    return tuple(resized(op, old, new) for op in ops)
