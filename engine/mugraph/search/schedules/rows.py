"""Microseconds of kernels whose products are of a row and a matrix: multiply and sum, bound by the bytes of the matrix.

Blocks wait for their own loads, and others fill the wait: how many there are does not matter. What matters is how much
a thread has on the way at a time, how often it waits for it, and how many sums warps share.

Measured on an H200 (26 November 2026; 4,096 int8 or float16 inputs by 14,336 columns, 165 schedules): 18.2 µs in one
step with 64 bytes a thread, 18.7 in two, 20 in four, 21.5 in eight, 23 to 25 in sixteen; with 32 bytes a thread 0.7 to
1.6 µs more, with 16 bytes 4 to 5.
"""

from __future__ import annotations

from math import log2

from mugraph.ir.block import Schedule
from mugraph.search.schedules.tiles import Shape
from mugraph.search.schedules.work import Work

_STEP = 0.05
"""Of the traffic's time, for each doubling of the steps."""
_THIN = 0.05
"""The same, for each thread that is needed beside one to have ENOUGH on the way."""
_ENOUGH = 64
"""Bytes of a thread in one step."""
_COLUMN, _MOST_COLUMNS = 0.01, 32
"""Of the traffic's time, for each column of a block, at most so many: warps and threads share its sum. (Sixteen columns
in steps of 2,048 inputs take 24.5 µs, four 19.)"""


def is_of_rows(shape: Shape) -> bool:
    """Does it have products, and none of matrices?"""
    return bool(shape.row_sums) and not shape.dot_axes


def slower(shape: Shape, schedule: Schedule, found: Work) -> float:
    """How many times longer than at the memory's bandwidth its traffic takes."""
    tiles = shape.tiles(schedule)
    most = max((one for one in shape.accesses if not one.is_store), key=lambda one: one.whole)
    held = most.width * shape.elements(tiles, most.op) / (32 * schedule.num_warps)
    columns = min(shape.elements(tiles, op) for op in shape.row_sums)  # of sums of groups, as scales have, the last one
    times = 1 + _COLUMN * min(columns, _MOST_COLUMNS)
    return times * (1 + _STEP * log2(max(1.0, found.steps))) * (1 + _THIN * max(0.0, _ENOUGH / held - 1))


def reading_and_computing(reading: float, computing: float) -> float:
    """Of a processor that reads for so long and computes for so long. The longer of the two hides the other where that
    is much shorter; where both take as long, blocks begin and end in step, and hardly any of it is hidden.

    A row by 14,336 columns of 4,096 on an H200, microseconds less the start, by numbers of four, eight and sixteen
    bits: read in 9.0, 14.1 and 27.7, computed in 8.7, 5.1 and 5.0, measured 17.1, 16.5 and 26.5.
    """
    longer, shorter = max(reading, computing), min(reading, computing)
    return longer + shorter * shorter / longer
