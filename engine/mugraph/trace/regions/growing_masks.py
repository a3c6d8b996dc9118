"""Constants with a triangle in them whose sizes vary: from which corner their diagonal keeps its distance.

A causal mask of t queries and as many keys begins at its first corner at every size, one of t queries that look back at
s keys ends at its last. What holds at all sizes that were seen is taken to hold at all: the calls that make the mask
have the same arguments, or sums and products of the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.calls import Corner, TensorInfo, Triangle
from mugraph.ir.masks import kept
from mugraph.ir.region import Region

_CORNERS: tuple[Corner, Corner] = ("first", "last")


def with_corners(seen: Sequence[Region]) -> list[Region]:
    """The regions, traced at several sizes, with the corners of the masks that have one. What the code finds has none:
    it is looked at where the code runs."""
    first, *others = seen
    found = {live_in.value for live_in in first.live_ins}
    made: dict[int, list[TensorInfo]] = {}
    for value, info in first.values.items():
        if value in found or info.triangle is None or info.triangle.is_uniform:
            continue
        infos = [info, *(other.values[value] for other in others if value in other.values)]
        if len(infos) == len(seen) and any(matrix(one) != matrix(info) for one in infos):
            made[value] = _with_corner(infos) or infos
    if not made:
        return list(seen)
    return [
        replace(one, values={**one.values, **{value: infos[at] for value, infos in made.items()}})
        for at, one in enumerate(seen)
    ]


def matrix(info: TensorInfo) -> tuple[int, int]:
    """Rows and columns."""
    rows, columns = (1, 1, *info.shape)[-2:]
    return rows, columns


def resized_mask(info: TensorInfo, shape: tuple[int, ...]) -> Triangle | None:
    """What a constant holds where it has another shape."""
    if info.triangle is None or not info.triangle.corner:
        return info.triangle
    return _at(info, info.triangle, info.triangle.corner, replace(info, shape=shape))


def _at(info: TensorInfo, triangle: Triangle, corner: Corner, other: TensorInfo) -> Triangle:
    number = kept(triangle.diagonal, corner, matrix(info), matrix(other))
    return replace(triangle, diagonal=number, corner=corner)


def _with_corner(infos: Sequence[TensorInfo]) -> list[TensorInfo] | None:
    """None where no corner explains what was seen, or too little of it was."""
    first = infos[0]
    assert first.triangle is not None
    telling = {matrix(one) for one in infos if one.triangle is not None and not one.triangle.is_uniform}
    if len(telling) < 2:
        return None
    for corner in _CORNERS:
        made = [_at(first, first.triangle, corner, one) for one in infos]
        if all(map(_holds, infos, made)):
            return [replace(one, triangle=triangle) for one, triangle in zip(infos, made, strict=True)]
    return None


def _holds(info: TensorInfo, made: Triangle) -> bool:
    """Are these the numbers that were seen?"""
    (rows, columns), seen = matrix(info), info.triangle
    if seen is None:
        return False
    if made.diagonal >= columns - 1:
        return seen.is_uniform and seen.below == made.below
    if made.diagonal <= -rows:
        return seen.is_uniform and seen.below == made.above
    return replace(seen, corner=made.corner) == made
