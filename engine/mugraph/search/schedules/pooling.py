"""Microseconds of kernels that reduce over the taps of windows, and over nothing else: poolings.

Their blocks take the taps one by one, in loops: each is a run of places, which the cache has for all taps but the
first. Nothing waits for what other threads have. A tile of all taps is spread over lanes and warps, which then exchange
what they have found.

Measured on an H200 (float32; max-pooling of 8 taps and of 4 x 4, mean of 8, a gigabyte each): loops take 0.15 to 0.5 of
what PyTorch takes, tiles of all taps 1 to 7 times as long as it. Loops read 6 to 12 terabytes a second of the cache,
the most with two places for each thread.
"""

from __future__ import annotations

from mugraph.ir.block import Schedule
from mugraph.search.schedules.tiles import Shape
from mugraph.targets import Target

WHOLE = 4.0
"""How many times longer than otherwise estimated a kernel takes whose tiles have all taps of a window, at least."""
_TAP = 1.8e-4
"""Microseconds that a processor takes for a place of a tile that has several taps of a window: its address, its mask,
and its part of sums that lanes and warps exchange. Measured on an H200 (float32): 8 taps of 805 million places take
8,856 µs; 27 taps of 268 million, in tiles of 4 x 4 x 4, of which 27 count, 22,974."""
_CACHE = 68_000.0
"""Bytes of its own cache that a processor reads in a microsecond."""
_RUN = 32
"""Places of a run that a warp reads at once."""
_PLACES = ((1, 1.2), (2, 1.0), (4, 1.1))
"""Places of a thread, at most, and how much longer it takes than with two."""
_MANY = 1.8
"""The same of more."""


def has_whole_taps(shape: Shape, schedule: Schedule) -> bool:
    """Is a window's every tap in a tile?"""
    return any(schedule.loops.get(axis, shape.sizes[axis]) > 1 for axis in shape.taps)


def whole_taps_us(shape: Shape, schedule: Schedule, blocks: int, target: Target) -> float:
    """To read and reduce tiles that have several taps of a window; 0 where there are none. blocks: of the grid"""
    if not has_whole_taps(shape, schedule):
        return 0.0
    tiles = shape.tiles(schedule)
    read = (one.op for one in shape.accesses if not one.is_store and shape.taps.intersection(one.op.axes))
    places = max((shape.elements(tiles, op) * shape.trips(schedule, tiles, op) for op in read), default=0.0)
    return blocks * places * _TAP / target.processors


def is_pooling(shape: Shape, schedule: Schedule) -> bool:
    """Are taps all that it loops over, one by one, and all that it reduces?"""
    if not shape.taps or has_whole_taps(shape, schedule) or not shape.taps.issuperset(shape.loop_axes):
        return False
    return all(shape.taps.issuperset(op.over) for op in shape.block.ops if op.kind.reduces or op.kind.scans)


def read_us(shape: Shape, schedule: Schedule, drawn: float, target: Target) -> float:
    """To read all taps from the processors' caches, and to write the results. drawn: bytes, in whole sectors"""
    tiles = shape.tiles(schedule)
    reads = [one for one in shape.accesses if not one.is_store and one.is_looped]
    most = max(reads, key=lambda one: shape.elements(tiles, one.op))
    places = shape.elements(tiles, most.op) / (32 * schedule.num_warps)
    slower = next((times for least, times in _PLACES if places <= least), _MANY) / min(1.0, places)
    tensor = shape.block.tensor(most.op.tensor)
    run, apart = _RUN, 1
    for window in tensor.windows:
        if tensor.strides[window.dim] == 1:
            positions, _ = window.split(tensor.dims[window.dim])
            run, apart = tiles[positions[-1]] if positions else 1, window.stride
    return drawn * slower * max(1.0, _RUN / run, apart) / (target.processors * _CACHE)
