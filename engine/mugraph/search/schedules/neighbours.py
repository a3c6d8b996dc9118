"""Schedules one step from a given one: what to measure next, once a good one has been measured.

OpEvo (§3.2) walks by mutation: factors that differ by one step, neighbouring powers of two. Here the walk starts at
measured candidates, and the cost model filters and ranks its steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mugraph.ir.block import LOADS_AHEAD, PRECISIONS, Candidate, Schedule
from mugraph.ir.eviction import other_way, reads_once
from mugraph.ir.parts import with_parts_at
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.grid_order import in_grid_order
from mugraph.search.schedules.sizes import ScheduleLimits, enumerate_schedules, fits
from mugraph.search.schedules.split_schedules import alone, with_then
from mugraph.search.schedules.tiles import Shape
from mugraph.targets import Target

WALKED = ScheduleLimits(num_warps=(1, 2, 4, 8, 16), num_stages=(1, 2, 3, 4, 5, 6))
"""Wider limits than listed schedules have: to measure a step beyond those costs little."""


def neighbours(candidate: Candidate, target: Target) -> list[Candidate]:
    """Candidates of the same topology whose schedules differ in one choice by one step, the fastest by estimate first.

    A step doubles or halves a tile or the warps, swaps operands, adds or removes a stage, lets go first of what is read
    once or no longer does, or computes products of float32 in another precision. All fit the device, by estimate. If
    several kernels follow one another, the steps of each count; a pre-defined kernel has none.
    """
    found = _of_one(candidate, target)
    if candidate.then is not None:
        first = alone(candidate)
        found = [with_then(step, candidate.then) for step in found]
        found += [with_then(first, step) for step in neighbours(candidate.then, target)]
    return sorted(found, key=lambda candidate: candidate.estimate_us)


def _of_one(candidate: Candidate, target: Target) -> list[Candidate]:
    block = candidate.block
    if candidate.schedule.library:
        return []
    shape = Shape(block)
    tiles = _tiles_of(shape)
    found: dict[Schedule | tuple[object, ...], Candidate] = {}
    for schedule in _steps(candidate.schedule, shape):
        if _tiling(schedule) not in tiles or schedule.num_warps not in WALKED.num_warps:
            continue
        if schedule.num_stages not in WALKED.num_stages:
            continue
        used = fits(shape, schedule, target, WALKED)
        if used:
            found[key(schedule)] = Candidate(block, schedule, estimate_us(shape, schedule, target, used))
    return list(found.values())


def key(schedule: Schedule) -> tuple[object, ...]:
    """What two schedules of one topology differ in."""
    how = schedule.num_warps, schedule.num_stages, schedule.precision, schedule.evict
    return (schedule.grid, *_tiling(schedule), *how)


def _steps(schedule: Schedule, shape: Shape) -> Iterator[Schedule]:
    block = shape.block
    for position, (axis, tile) in enumerate(schedule.grid):
        for other in (tile * 2, tile // 2):
            grid = [*schedule.grid[:position], (axis, other), *schedule.grid[position + 1 :]]
            if other:
                yield replace(schedule, grid=in_grid_order(shape, grid))
    for axis, tile in schedule.loops.items():
        for other in (tile * 2, tile // 2):
            if other:
                yield with_parts_at(replace(schedule, loops={**schedule.loops, axis: other}), block)
    yield replace(schedule, swap=not schedule.swap)
    for warps in (schedule.num_warps * 2, schedule.num_warps // 2):
        yield replace(schedule, num_warps=warps)
    for stages in (schedule.num_stages + 1, schedule.num_stages - 1) if shape.loop_axes else ():
        if shape.dot_axes or stages >= LOADS_AHEAD - 1:  # with fewer it is the same kernel
            yield replace(schedule, num_stages=stages)
    if reads_once(block, schedule):
        yield other_way(block, schedule)
    for precision in shape.precisions(PRECISIONS):
        if precision != schedule.precision:
            yield replace(schedule, precision=precision)


def _tiling(schedule: Schedule) -> tuple[object, ...]:
    return frozenset(schedule.grid), frozenset(schedule.loops.items()), schedule.swap


def _tiles_of(shape: Shape) -> set[tuple[object, ...]]:
    """All tilings of the space."""
    one = ScheduleLimits(num_warps=(4,), num_stages=(2,))
    return {_tiling(schedule) for schedule in enumerate_schedules(shape, one)}
