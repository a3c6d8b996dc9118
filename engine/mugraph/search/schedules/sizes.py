"""Sizes for a topology: grid tiles, loop tiles, operand swap, warps and stages, filtered by the device and ranked.

MCFuser §4.2: tiles are powers of two with little padding (rule 3), and fit in shared memory by an estimate (rule 4).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappush, heapreplace, nsmallest
from math import inf, prod

from mugraph.ir.block import PRECISIONS, BlockGraph, Candidate, Loop, Precision, Schedule
from mugraph.ir.ops import Op
from mugraph.ir.tensors import Tensor
from mugraph.search.schedules.bounds import LEAST_WARPS, least_of_tiles_us
from mugraph.search.schedules.cost import MAX_REGISTERS, Usage, estimate_us, usage
from mugraph.search.schedules.diverse import diverse
from mugraph.search.schedules.grid_order import in_grid_order
from mugraph.search.schedules.tile_choices import Choice, TileChoices
from mugraph.search.schedules.tiles import MIN_DOT, Shape
from mugraph.search.schedules.work import WIDE_LEFT, Work, work
from mugraph.search.topologies.limits import never
from mugraph.targets import Target

MAX_TILE_ELEMENTS = 1 << 20


SCHEDULED = 8
"""Topologies, the best by a coarse look, all of whose schedules are estimated."""
SHORTLIST = 16
"""Tiles a topology is looked at with, when another of the same axes has been looked at with all."""
_KEPT = 512
"""Block graphs whose schedules are kept: a few megabytes."""


@dataclass(frozen=True, slots=True)
class ScheduleLimits:
    """Bounds of the schedules of one topology.

    max_candidates: kept, the best by estimate
    num_warps, num_stages: choices
    precisions:     choices, where products are of float32
    shared_slack:   estimates up to this many times the device's shared memory pass (MCFuser rule 4 has 1.2; Triton
                    refuses what does not fit, so nothing is gained above 1)
    """

    max_candidates: int = 64
    num_warps: tuple[int, ...] = (4, 8)
    num_stages: tuple[int, ...] = (2, 3, 4, 5)
    shared_slack: float = 1.0
    precisions: tuple[Precision, ...] = PRECISIONS


def schedules(block: BlockGraph, target: Target, limits: ScheduleLimits | None = None) -> list[Candidate]:
    """Schedules of a topology that the device can hold, fastest by estimate first; empty where none fits."""
    content = tuple(block.sizes.items()), block.tensors, block.ops, block.loops
    return [Candidate(block, schedule, us) for us, schedule in _kept(content, target, limits or ScheduleLimits())]


_Content = tuple[tuple[tuple[str, int], ...], tuple[Tensor, ...], tuple[Op, ...], tuple[Loop, ...]]
"""Of a block graph, without its name."""


@lru_cache(maxsize=_KEPT)
def _kept(content: _Content, target: Target, limits: ScheduleLimits) -> tuple[tuple[float, Schedule], ...]:
    """One block graph is met again and again: two halves of several cuts are alike, and so are the kernels of a range
    at one of its sizes."""
    sizes, tensors, ops, loops = content
    return tuple(listed(BlockGraph("", dict(sizes), tensors, ops, loops), target, limits))


def listed(block: BlockGraph, target: Target, limits: ScheduleLimits) -> list[tuple[float, Schedule]]:
    """The schedules with their estimates, found anew."""
    shape = Shape(block)
    best = _Best(limits.max_candidates)
    # A bound costs about as much as one estimate: it is worth it where tiles have several schedules.
    prunes = len(limits.num_warps) * len(limits.num_stages) > 1 and min(limits.num_warps) >= LEAST_WARPS
    every = enumerate(_tilings(shape))
    least = ((least_of_tiles_us(shape, tiling[0], target) if prunes else 0.0, n, tiling) for n, tiling in every)
    for us, number, tiling in sorted(least, key=lambda row: row[0]):
        if us > best.worst_us:
            break
        done: tuple[Schedule, Work] | None = None
        for within, schedule in enumerate(_with_tiles(shape, limits, *tiling)):
            used = fits(shape, schedule, target, limits)
            if not used:
                continue
            if done is None or not _differ_in_stages(schedule, done[0]):
                done = schedule, work(shape, schedule, schedule.blocks(shape.sizes))
            us = estimate_us(shape, schedule, target, used, done[1])
            best.add((us, number, within), schedule)
    return best.sorted()


class _Best:
    """The schedules with the least estimates, so many; of equal ones those that were enumerated first."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._heap: list[tuple[float, int, int, Schedule]] = []

    @property
    def worst_us(self) -> float:
        """What another one must not be above."""
        return -self._heap[0][0] if len(self._heap) >= self._count else inf

    def add(self, rank: tuple[float, int, int], schedule: Schedule) -> None:
        us, number, within = rank
        row = (-us, -number, -within, schedule)
        if len(self._heap) < self._count:
            heappush(self._heap, row)
        elif row[:3] > self._heap[0][:3]:
            heapreplace(self._heap, row)

    def sorted(self) -> list[tuple[float, Schedule]]:
        return [(-row[0], row[3]) for row in sorted(self._heap, key=lambda row: row[:3], reverse=True)]


def candidates(
    blocks: Iterable[BlockGraph], target: Target, limits: ScheduleLimits | None = None, most: int = 256
) -> list[Candidate]:
    """The best candidates of many topologies: a coarse look at each, then all schedules of those that promise most.

    The fastest by estimate comes first; the head varies (diverse.py), the rest follows by estimate."""
    return diverse(best(blocks, target, limits)[:most])


def best(
    blocks: Iterable[BlockGraph],
    target: Target,
    limits: ScheduleLimits | None = None,
    over: Callable[[], bool] = never,
) -> list[Candidate]:
    """All schedules of the topologies that promise most after a coarse look, fastest by estimate first. over: what
    there is then is all"""
    limits = limits or ScheduleLimits()
    seen = looks(blocks, target, limits, over)
    found: list[Candidate] = []
    for estimate, block in seen[:SCHEDULED]:
        if estimate > 4 * seen[0][0] or (found and over()):
            break
        found += schedules(block, target, limits)
    return sorted(found, key=lambda candidate: candidate.estimate_us)


def looks(
    blocks: Iterable[BlockGraph], target: Target, limits: ScheduleLimits, over: Callable[[], bool] = never
) -> list[tuple[float, BlockGraph]]:
    """Topologies with their best estimate, fastest first. over: once one is found, no other is looked at then"""
    look = Looks(target, limits)
    found: list[tuple[float, BlockGraph]] = []
    for block in blocks:
        candidate = look.at(block)
        if candidate is not None:
            found.append((candidate.estimate_us, block))
        if found and over():
            break
    return sorted(found, key=lambda pair: pair[0])


class Looks:
    """A coarse look at one topology after the other: the first of each set of axes and loops over all tiles, the others
    over those that were good for the first, or came nearest (hundreds of topologies differ in the place of a scale)."""

    def __init__(self, target: Target, limits: ScheduleLimits | None = None) -> None:
        limits = limits or ScheduleLimits()
        self._target = target
        few = replace(limits, max_candidates=SHORTLIST, num_stages=limits.num_stages[-2:-1] or limits.num_stages)
        # Few warps first: more of them are for rows that few cannot hold.
        self._few = [replace(few, num_warps=(warps,)) for warps in limits.num_warps]
        self._shortlists: dict[Hashable, list[Schedule]] = {}
        self._nearest: dict[Hashable, list[Schedule]] = {}
        """Of axes and loops of which none fitted: those that came nearest to it."""

    def at(self, block: BlockGraph) -> Candidate | None:
        """With the best schedule of few; None where none of them fits."""
        shape = Shape(block)
        return next((found for few in self._few if (found := self._with(block, shape, few)) is not None), None)

    def _with(self, block: BlockGraph, shape: Shape, few: ScheduleLimits) -> Candidate | None:
        key = (shape.grid_axes, block.loops, frozenset(shape.dot_axes), frozenset(shape.batch_axes),
               frozenset(block.sizes.items()), few.num_warps)  # fmt: skip
        best: Candidate | None = None
        for schedule in self._shortlists.get(key, ()):
            used = fits(shape, schedule, self._target, few)
            if used:
                us = estimate_us(shape, schedule, self._target, used)
                if best is None or us < best.estimate_us:
                    best = Candidate(block, schedule, us)
        if best is None:  # of these axes the first, or one that needs other tiles
            near = self._nearest.get(key)
            if near is not None and not any(fits(shape, schedule, self._target, few) for schedule in near):
                return None
            listed = schedules(block, self._target, few)
            if listed:
                best = listed[0]
                self._shortlists[key] = [candidate.schedule for candidate in listed]
            elif near is None:
                self._nearest[key] = _nearest(shape, self._target, few)
        return best


def _nearest(shape: Shape, target: Target, limits: ScheduleLimits) -> list[Schedule]:
    """Of schedules that do not fit, those that exceed the device's memory least."""

    def excess(schedule: Schedule) -> float:
        used = usage(shape, schedule, target)
        return max(used.shared / target.shared, used.registers / MAX_REGISTERS)

    return nsmallest(SHORTLIST, enumerate_schedules(shape, limits), excess)


def enumerate_schedules(shape: Shape, limits: ScheduleLimits) -> Iterator[Schedule]:
    """All schedules of the space, whether they fit or not."""
    for plain, swaps in _tilings(shape):
        yield from _with_tiles(shape, limits, plain, swaps)


def _tilings(shape: Shape) -> Iterator[tuple[Schedule, tuple[bool, ...]]]:
    """All tiles: a schedule that has them, and whether a product's operands may change places."""
    return ((plain, swaps) for _, plain, swaps in tilings(shape))


def tilings(shape: Shape) -> Iterator[tuple[Choice, Schedule, tuple[bool, ...]]]:
    """As `_tilings`, with the tile of each axis: the grid lacks those that a block holds all of."""
    axes = shape.grid_axes
    choices = TileChoices(shape)
    for tile in choices.together():
        whole = choices.packed_whole(tile)
        grid = in_grid_order(shape, ((axis, tile[axis]) for axis in axes if axis not in whole))
        loop = {axis: tile[axis] for axis in shape.loop_axes}
        yield tile, Schedule(grid, loop), _swaps(shape, tile)


def _with_tiles(shape: Shape, limits: ScheduleLimits, plain: Schedule, swaps: tuple[bool, ...]) -> Iterator[Schedule]:
    for swap, precision, warps in itertools.product(swaps, shape.precisions(limits.precisions), limits.num_warps):
        for stages in limits.num_stages if shape.loop_axes and shape.dot_axes else (2,):
            yield Schedule(plain.grid, plain.loops, swap, warps, stages, precision=precision)


def _differ_in_stages(a: Schedule, b: Schedule) -> bool:
    """Do two that follow one another in the enumeration differ in their stages alone?"""
    same = a.swap == b.swap and a.num_warps == b.num_warps and a.precision == b.precision
    return same and a.grid is b.grid and a.loops is b.loops


def fits(shape: Shape, schedule: Schedule, target: Target, limits: ScheduleLimits) -> Usage | None:
    """What it occupies where tiles, shared memory and registers are within the device's bounds, by estimate."""
    if _is_miscompiled(shape, schedule, target):
        return None
    used = usage(shape, schedule, target)
    if used.shared > target.shared * limits.shared_slack or used.registers > MAX_REGISTERS or not used.blocks:
        return None
    tiles = shape.tiles(schedule)
    if tiles.fit is None:
        small = all(shape.terms(tiles, op) <= MAX_TILE_ELEMENTS for op in shape.block.ops)
        tiles.fit = small and shape.packs(tiles) is not None
    return used if tiles.fit else None


def _is_miscompiled(shape: Shape, schedule: Schedule, target: Target) -> bool:
    """Does Triton 3.6 miscompile it for compute capability 9.0?

    It does where a product of a product, both outside of every loop, runs on the wide path and has fewer than 64
    columns on its right. Such kernels give wrong results, differ from run to run, or access illegal addresses. On an
    H200 that was so for most of them, of attention and of chains of two products. The same source is right in the
    interpreter, and a memory checker finds nothing.
    """
    if target.capability == 80 or schedule.num_warps < 4 or not shape.chained:
        return False
    tiles = shape.tiles(schedule)
    for product in shape.chained:
        rows, columns = (prod(tiles[axis] for axis in side) for side in (product.rows, product.columns))
        left, right = (columns, rows) if schedule.swap else (rows, columns)
        if left >= WIDE_LEFT and 1 < right < WIDE_LEFT:
            return True
    return False


def _swaps(shape: Shape, tile: Mapping[str, int]) -> tuple[bool, ...]:
    """Transposed products are worth it where a product has few rows and many columns (a tensor core's 64 rows), and
    where the cores take the right operand along the depth and the left one alone lies so (in_parts.py)."""
    for product in shape.products:
        rows, columns = (prod(tile[axis] for axis in side) for side in (product.rows, product.columns))
        turns = product.is_exact and product.along_depth == (True, False)
        if columns >= 64 and rows > 1 and (turns or rows <= MIN_DOT * 2):
            return (False, True)
    return (False,)
