"""Masks: triangles of ones in a tensor of zeros, known from their axes alone (torch.tril and torch.triu of ones).

The element at row r and column c is 1 where c <= r + diagonal. A causal mask has queries as rows, keys as columns and
diagonal 0; the complement of one, or an upper triangle, is a mask with rows and columns exchanged. Rows and columns are
counted over one axis or several, outermost first, so that a mask survives the splitting of an axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from mugraph.ir.ops import Kind, Op

_NEAR = 2
"""Distance from a corner up to which a diagonal keeps its distance at other sizes."""


def diagonal(op: Op) -> int:
    return int(op.value)


def extents(op: Op, sizes: Mapping[str, int]) -> tuple[int, int]:
    """How many rows and columns the mask has."""
    return prod(sizes[axis] for axis in op.rows), prod(sizes[axis] for axis in op.columns)


def resized(op: Op, old: Mapping[str, int], new: Mapping[str, int]) -> Op:
    """The mask at other sizes: it starts as far from the corner it is nearest to, the first row and column or the last
    ones, as it did; a diagonal far from both keeps its place in proportion. A mask without an empty row keeps that."""
    if op.kind is not Kind.MASK:
        return op
    rows, columns = extents(op, old)
    new_rows, new_columns = extents(op, new)
    corner, new_corner = 0, 0
    if abs(diagonal(op) - (columns - rows)) < abs(diagonal(op)):
        corner, new_corner = columns - rows, new_columns - new_rows
    distance = diagonal(op) - corner
    if abs(distance) > _NEAR:
        scaled = _NEAR + 1 + abs(distance) * new_columns // (2 * columns)
        distance = scaled if distance > 0 else -scaled
    if diagonal(op) >= 0:
        new_corner = max(0, new_corner, -distance)
    return replace(op, value=float(new_corner + distance))


def resized_all(ops: Sequence[Op], old: Mapping[str, int], new: Mapping[str, int]) -> tuple[Op, ...]:
    """The operators at other sizes: nothing but masks depends on them."""
    return tuple(resized(op, old, new) for op in ops)
