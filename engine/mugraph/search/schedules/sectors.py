"""Memory is read and written in sectors. If neighbouring elements fill less than one, its rest is moved for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.ir.halves import STEP, is_half
from mugraph.ir.tensors import Sizes, Tensor

SECTOR, LINE = 32, 128
"""Bytes; a line of the cache is four sectors."""


def innermost(tensor: Tensor, sizes: Sizes) -> tuple[str, ...]:
    """Axes, the innermost first, whose elements lie in memory without gaps. There are none if the innermost axis has
    gaps, or if a window reads the tensor."""
    half = is_half(tensor)  # what lies between its elements is the other half's
    if tensor.windows and not half:
        return ()
    steps = tensor.axis_strides(sizes)
    found: list[str] = []
    elements = STEP if half else 1
    for axis in sorted(tensor.axes, key=lambda axis: steps[axis]):
        if sizes[axis] == 1 or not steps[axis]:
            continue
        if steps[axis] != elements:
            break
        found.append(axis)
        elements *= sizes[axis]
    return tuple(found)


def in_sectors(axes: Sequence[str], width: int, tiles: Mapping[str, int], sizes: Sizes, sector: int = SECTOR) -> float:
    """How many times its own bytes a tile moves. axes: as `innermost` gives them. width: bytes of an element.
    tiles: of all axes. sector: bytes that are moved together"""
    return max(1.0, sector / run_bytes(axes, width, tiles, sizes)) if axes else 1.0


def run_bytes(axes: Sequence[str], width: int, tiles: Mapping[str, int], sizes: Sizes) -> int:
    """Bytes of a tile that lie in memory one after the other. The parameters are those of `in_sectors`."""
    run = width
    for axis in axes:
        tile = min(tiles[axis], sizes[axis])
        run *= tile
        if tile < sizes[axis]:
            break
    return run
