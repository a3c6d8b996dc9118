"""The least time that any schedule with given tiles can take: tiles that cannot be among the best are not looked at.

What is counted does not depend on warps, stages or the order of a product's operands: the grid's traffic, products at
the best rate there is, one operation of a thread after the other, what blocks wait for in each iteration. Each of them
is at most what `cost.estimate_us` counts, so nothing is lost that would have been found.
"""

from __future__ import annotations

from math import ceil, prod

from mugraph.baseline.rates import fitted
from mugraph.ir.block import Schedule
from mugraph.search.schedules.cost import memory_floor_us, stream_us
from mugraph.search.schedules.costs import Costs, fitted_costs
from mugraph.search.schedules.in_parts import least_flops
from mugraph.search.schedules.pooling import is_pooling, whole_taps_us
from mugraph.search.schedules.rows import is_of_rows
from mugraph.search.schedules.tiles import Shape, Tiles
from mugraph.search.schedules.work import Work, iterations, traffic
from mugraph.targets import Target

ROUNDING = 1 - 1e-9
"""Sums in another order differ by less."""
LEAST_WARPS = 4
"""Of a schedule at least: with fewer, an exchange would cost less than is counted here."""


def least_of_tiles_us(shape: Shape, schedule: Schedule, target: Target) -> float:
    """Microseconds, of all schedules with these tiles and four warps or more. schedule: any of them"""
    costs = fitted_costs().costs
    tiles = shape.tiles(schedule)
    blocks = schedule.blocks(shape.sizes)
    each = ceil(blocks / target.processors)
    found = Work()
    found.steps, found.fills = iterations(shape, schedule)
    if found.fills < 1 and shape.block.loops:  # a mask ends a loop before it begins: less waiting than is counted here
        return 0.0
    for access in shape.accesses:
        traffic(found, shape, schedule, access, tiles, blocks)
    if is_pooling(shape, schedule):
        return (costs.start_us + found.unique / (target.bandwidth * fitted().rates.fused_stream)) * ROUNDING
    chain, busy = _processor_us(found, shape, schedule, tiles, target, costs)
    if shape.is_stream:
        return (costs.start_us + max(each * busy, stream_us(found, target))) * ROUNDING
    loading = memory_floor_us(found, target, blocks, costs)
    if is_of_rows(shape):
        return (costs.start_us + max(0.0, loading - costs.floor_us)) * ROUNDING
    computing = max(chain + busy, each * busy)
    serial = costs.overlap if shape.dot_axes else costs.serial
    both = max(computing, loading) + serial * min(computing, loading)
    both = max(both - costs.floor_us, whole_taps_us(shape, schedule, blocks, target))
    return (costs.start_us + max(0.0, both)) * ROUNDING


def _processor_us(
    found: Work, shape: Shape, schedule: Schedule, tiles: Tiles, target: Target, costs: Costs
) -> tuple[float, float]:
    """Of one block at least: what it waits for itself, and what it keeps the processor with."""
    chain = found.fills * costs.fill_us
    operations = 0.0
    for computed in shape.computed:
        trips = shape.trips(schedule, tiles, computed.op)
        operations += computed.instructions * shape.elements(tiles, computed.source) * trips
        chain += trips * (costs.reduction_us * computed.reduces + costs.exp_us * computed.has_exp)
    busy = operations / (32 * LEAST_WARPS) * costs.issue_us
    peak = target.flops / target.processors
    for product in shape.products:
        rows, columns, depth = (prod(tiles[axis] for axis in side) for side in product.sides)
        if min(rows, columns) > 1:
            flops = 2.0 * rows * columns * depth * shape.trips(schedule, tiles, product.op)
            if product.is_exact:
                busy += min(flops / (peak * costs.exact), least_flops(product, flops, rows, columns) / peak)
            else:
                busy += flops / (peak * max(costs.wide, costs.narrow))
    return chain, busy
