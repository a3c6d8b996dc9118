"""Which axis of a grid varies fastest from one block to the next.

A device runs as many blocks as it has processors, or a few times as many, in the order of their numbers, and what these
read in common comes from its second-level cache. A tensor that lies along the fastest axis is walked through whole at
each place along the others. If the cache does not hold it, it comes from memory each time: a product of 4,096 rows by
32,000 columns of 4,096 elements, in tiles of 128 by 128 with its columns fastest, reads 262 MB of columns 32 times;
with its rows fastest, each once.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, prod

from mugraph.search.schedules.tiles import Shape

CACHED = 40 << 20
"""Bytes of a tensor that the second-level cache of every device here holds. (An A100's has 40 MiB, an H100's 50.)"""


def in_grid_order(shape: Shape, tiles: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Axes and their tiles, the fastest first: that with most blocks, where none makes blocks read again from memory
    what another would have them read from the cache."""
    order = sorted(tiles, key=lambda pair: -(shape.sizes[pair[0]] / pair[1]))
    if len(order) > 1 and any(access.whole > CACHED for access in shape.accesses):
        counts = {axis: ceil(shape.sizes[axis] / tile) for axis, tile in order}
        order.sort(key=lambda pair: _read_again(shape, pair[0], counts))  # which keeps the order of equal ones
    return tuple(order)


def _read_again(shape: Shape, fastest: str, counts: dict[str, int]) -> int:
    """Bytes that come from memory more than once."""
    found = 0
    for access in shape.accesses:
        if access.is_store or access.whole <= CACHED or fastest not in access.op.axes:
            continue
        others = prod(count for axis, count in counts.items() if axis not in access.op.axes)
        found += access.whole * (others - 1)
    return found
