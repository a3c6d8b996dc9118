"""Schedules of a block graph are listed once, whatever it is called; those of another size or device are others."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.transforms.resizing import resize_block
from mugraph.search import Limits, ScheduleLimits, schedules, topologies
from mugraph.targets import TARGETS

from tests.engine.search.workloads import rmsnorm_linear

H200, A100 = TARGETS["h200"], TARGETS["a100"]


def test_equal_block_graphs_have_equal_schedules_of_their_own() -> None:
    for found in [one.block for one in topologies(rmsnorm_linear(m=64), Limits(seconds=5.0))][:4]:
        first = schedules(found, H200)
        other = replace(found, name="other", sizes=dict(found.sizes))
        again = schedules(other, H200)
        assert [(one.schedule, one.estimate_us) for one in again] == [(one.schedule, one.estimate_us) for one in first]
        assert all(one.block is other for one in again)
        assert all(one.block is found for one in first)
        again.clear()  # a list of its own
        assert len(schedules(found, H200)) == len(first)


def test_what_they_depend_on_tells_them_apart() -> None:
    block = next(one.block for one in topologies(rmsnorm_linear(m=64), Limits(seconds=5.0)) if one.block.loops)
    first = schedules(block, H200)
    axis = max(block.sizes, key=lambda axis: block.sizes[axis])
    smaller = resize_block(block, {**block.sizes, axis: block.sizes[axis] // 2}, {axis})
    few = ScheduleLimits(num_warps=(4,), num_stages=(3,))
    told = {
        tuple((one.schedule.num_stages, one.schedule.num_warps, one.estimate_us) for one in found)
        for found in (first, schedules(smaller, H200), schedules(block, A100), schedules(block, H200, few))
    }
    assert len(told) == 4
