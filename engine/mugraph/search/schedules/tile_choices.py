"""Which tiles each axis of a topology may take, and which go together.

MCFuser §4.2, rule 3: tiles are powers of two with little padding.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from math import prod

from mugraph.search.schedules.products import Product
from mugraph.search.schedules.tiles import MIN_DOT, Shape, next_power

MAX_GRID_TILE = 256
MAX_ROW_TILE = 1024
MAX_STREAM_TILE = 8192
"""Of a kernel that computes element by element, where nothing else is in registers."""
LOOP_TILES = (16, 32, 64, 128, 256, 512)
LONG_LOOP_TILES = (1024, 2048, 4096, 8192)
"""Besides these, of kernels without products on tensor cores: little else is in registers, and each step waits for its
loads. (A row by 14,336 columns of 4,096 int8 each: 21 µs in steps of 512, 18 in one of 4,096, on an H200.)"""
LONG_SUM, LEAST_OF_LONG = 1 << 14, 256
"""Along an axis so long, a kernel without products takes no tiles of fewer places: each lane of a tile of 16 would add
up thousands of numbers one by one, and lose more than PyTorch's sums do (verification/so_far.py)."""
MAX_PADDING = 0.05
"""MCFuser rule 3: share of a padded axis that is padding."""
MANY, MOST_OF_OUTER = 2048, 4
"""Of more choices than so many, axes that are next to each other in no tensor's memory have no longer tiles than this:
the images of a pooling have five axes in the grid, and what is far apart is not loaded together anyway."""
MAX_ROW_PADDING = 0.15
"""The same of a row that lies in memory without gaps, where a tile has all of it."""

Choice = Mapping[str, int]
"""Every axis -> its tile, or its size where a block holds all of it."""


class TileChoices:
    """The tiles that the axes of one topology may have."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._alone = {axis: frozenset(_side_tiles(shape.sizes[axis])) for axis in shape.several}

    def together(self) -> Iterator[Choice]:
        """Every choice of tiles for the axes of the grid and the loops that products can take."""
        shape = self._shape
        axes = (*shape.grid_axes, *shape.loop_axes)
        grids = self._of_grids()
        loops = [_loop_tiles(shape, axis) for axis in shape.loop_axes]
        for tiles in itertools.product(*grids, *loops):
            tile = {**shape.sizes, **dict(zip(axes, tiles, strict=True))}
            if all(_is_product(product, tile) for product in shape.products) and self._packs_well(tile):
                yield tile

    def packed_whole(self, tile: Choice) -> frozenset[str]:
        """Packed axes that a block holds all of: the grid does not have them."""
        shape = self._shape
        return frozenset(axis for pack in shape.packs(tile) or () for axis in pack if tile[axis] >= shape.sizes[axis])

    def _of_grids(self) -> list[list[int]]:
        shape = self._shape
        grids = [self._of_grid(axis) for axis in shape.grid_axes]
        if prod(map(len, grids)) <= MANY:
            return grids
        outer = set(shape.grid_axes) - set(shape.dot_axes) - _next_to_each_other(shape)
        return [
            [tile for tile in tiles if tile <= MOST_OF_OUTER] or tiles[:1] if axis in outer else tiles
            for axis, tiles in zip(shape.grid_axes, grids, strict=True)
        ]

    def _of_grid(self, axis: str) -> list[int]:
        shape = self._shape
        size = shape.sizes[axis]
        if axis in shape.batch_axes or size == 1:
            return [1]
        if axis not in shape.dot_axes:
            most = MAX_STREAM_TILE if shape.is_stream else MAX_ROW_TILE
            whole = next_power(size)
            # Of 56 places only eight would be a tile without padding: 32 bytes of a row at a time.
            padded = [whole] if axis in shape.rows and whole <= most and _padding(size, whole) < MAX_ROW_PADDING else []
            return sorted({*_tiles(size, 1, most), *padded})
        if axis not in shape.several:
            return _side_tiles(size)
        return sorted({*self._alone[axis], *_tiles(size, 1, MIN_DOT), min(next_power(size), MAX_GRID_TILE)})

    def _packs_well(self, tile: Choice) -> bool:
        """Whether the wide axes of each side of a product are one dimension, and one worth having.

        At most one of them is in tiles, so that what lacks the others is loaded once for all of them. It has as many
        lanes as a product takes, and no more than the grid gives. An axis that is wide by itself has a tile as long as
        a product takes.
        """
        shape = self._shape
        if not shape.several:
            return True
        packs = shape.packs(tile)
        if packs is None:
            return False
        for pack in packs:
            cut = [axis for axis in pack if tile[axis] < shape.sizes[axis]]
            lanes = prod(next_power(tile[axis]) for axis in pack)
            if len(cut) > 1 or (cut and not MIN_DOT <= lanes <= MAX_GRID_TILE):
                return False
            if any(tile[axis] > next_power(shape.sizes[axis]) for axis in pack):  # another name for all of it
                return False
        packed = {axis for pack in packs for axis in pack}
        alone = (axis for axis in shape.grid_axes if axis in shape.several and axis not in packed and tile[axis] > 1)
        return all(tile[axis] in self._alone[axis] for axis in alone)


def _next_to_each_other(shape: Shape) -> set[str]:
    """Of each tensor, the two axes of the grid whose places are nearest in memory."""
    found: set[str] = set()
    for tensor in shape.block.tensors:
        strides = tensor.axis_strides(shape.sizes)
        found.update(sorted((a for a in shape.grid_axes if strides.get(a)), key=lambda a: abs(strides[a]))[:2])
    return found


def _side_tiles(size: int) -> list[int]:
    """Tiles of an axis that is a side of a product by itself."""
    return _tiles(size, MIN_DOT, MAX_GRID_TILE)


def _loop_tiles(shape: Shape, axis: str) -> list[int]:
    """Tiles of a loop: shorter than the axis. An axis of one tile has none; its form without a loop is searched by
    itself."""
    size = shape.sizes[axis]
    if axis in shape.batch_axes:
        return [1] if size > 1 else []
    several = any(axis in product.depth and len(product.depth) > 1 for product in shape.products)
    if size <= MIN_DOT:  # beside another axis of a product's depth, or as taps of a window, it can be taken one by one
        return [1] if (several or axis in shape.taps) and size > 1 else []
    tiles = LOOP_TILES if any(product.is_matrix for product in shape.products) else (*LOOP_TILES, *LONG_LOOP_TILES)
    good = [tile for tile in tiles if tile < size and _padding(size, tile) < MAX_PADDING] or [MIN_DOT]
    if shape.products or size < LONG_SUM:
        return good
    return [tile for tile in good if tile >= LEAST_OF_LONG] or good


def _tiles(size: int, least: int, most: int) -> list[int]:
    """Powers of two from `least` on with little padding. For an axis too short for any, as of 197 places, those that
    pad it no further than the next power of two."""
    powers = [1 << n for n in range(least.bit_length() - 1, most.bit_length()) if 1 << n <= next_power(size)]
    return [tile for tile in powers if _padding(size, tile) < MAX_PADDING] or powers or [least]


def _padding(size: int, tile: int) -> float:
    """Share of the padded axis that is padding."""
    padded = -(-size // tile) * tile
    return (padded - size) / padded


def _is_product(product: Product, tile: Choice) -> bool:
    """Whether tensor cores can compute it. Batch axes have tile 1. Without rows or columns it is multiply and sum, and
    may have any tiles."""
    return not product.is_matrix or all(tile[axis] == 1 for axis in product.batch)
