"""Poolings: the kernel that is expected to be fastest takes the taps of a window one by one, in loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, Search, schedules, topologies
from mugraph.search.schedules.bounds import least_of_tiles_us
from mugraph.search.schedules.pooling import is_pooling
from mugraph.search.schedules.tiles import MIN_DOT, Shape
from mugraph.targets import TARGETS

from tests.engine.units.regions import cut, meta, units

H200 = TARGETS["h200"]
Pool = Callable[[torch.Tensor], torch.Tensor]
POOLS: dict[str, tuple[Pool, tuple[int, ...]]] = {
    "longest run": (lambda x: F.max_pool1d(x, 8, 1, 4, 3), (64, 192, 65536)),
    "mean": (lambda x: F.avg_pool1d(x, 8, 1, 4), (64, 128, 65536)),
    "image": (lambda x: F.max_pool2d(x, 4, 1, 1), (32, 64, 512, 512)),
    "first of a residual network": (lambda x: F.max_pool2d(x, 3, 2, 1), (64, 64, 112, 112)),
    "volume": (lambda x: F.avg_pool3d(x, 3, 2, 1), (16, 32, 128, 128, 256)),
}


def program_of(name: str) -> TensorProgram:
    pool, shape = POOLS[name]
    (unit,) = units(cut(pool, x=meta(*shape, dtype=torch.float32)))
    return unit.program


def best_of(program: TensorProgram) -> list[tuple[BlockGraph, list[Candidate]]]:
    limits = Limits(seconds=20.0, max_topologies=400)
    every: dict[object, BlockGraph] = {}
    for found in topologies(program, limits):
        every.setdefault((bool(found.block.loops), tuple(op.kind for op in found.block.ops)), found.block)
    return [(block, schedules(block, H200)) for block in every.values()]


@pytest.mark.parametrize("name", POOLS)
def test_taps_are_taken_one_by_one(name: str) -> None:
    listed = best_of(program_of(name))
    best = min((found[0] for _, found in listed if found), key=lambda candidate: candidate.estimate_us)
    assert best.schedule.loops
    assert set(best.schedule.loops.values()) == {1}
    assert is_pooling(Shape(best.block), best.schedule)
    for block, found in listed:
        shape = Shape(block)
        for candidate in found:
            assert least_of_tiles_us(shape, candidate.schedule, H200) <= candidate.estimate_us


def test_a_row_of_56_places_is_one_tile() -> None:
    listed = best_of(program_of("first of a residual network"))
    best = min((found[0] for _, found in listed if found), key=lambda candidate: candidate.estimate_us)
    assert max(dict(best.schedule.grid).values()) == 64


def test_axes_that_no_schedule_cuts_are_not_looped_over() -> None:
    """Two poolings side by side, of 2 x 2 places each: four axes of two places."""
    (unit,) = units(cut(lambda x: F.max_pool2d(F.max_pool2d(torch.softmax(x, 1), 2), 2), x=meta(64, 16, 56, 56)))
    search = Search(unit.program, Limits(seconds=60.0, uncut=MIN_DOT))
    assert {found.block.loops for found in search.run()} == {()}
    assert search.stats.complete
