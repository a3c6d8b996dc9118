"""A coarse look at many topologies: those of which none fits cost as little as the others."""

from __future__ import annotations

from importlib import import_module

import pytest
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.search import Limits, ScheduleLimits, topologies
from mugraph.targets import TARGETS, Target

from tests.engine.search.workloads import rmsnorm_linear

sizes = import_module("mugraph.search.schedules.sizes")  # a function has the name of the room
H200 = TARGETS["h200"]


def unlooped() -> list[BlockGraph]:
    """The product whole in a block: nothing of them fits at these sizes."""
    every = [found.block for found in topologies(rmsnorm_linear(m=1024), Limits(seconds=5.0))]
    return [block for block in every if not block.loops]


def test_of_axes_of_which_none_fits_one_topology_is_looked_at_with_all_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = unlooped()
    assert len(blocks) > 2
    counted: list[BlockGraph] = []
    whole = sizes.schedules

    def schedules(block: BlockGraph, target: Target, limits: ScheduleLimits | None = None) -> list[Candidate]:
        counted.append(block)
        return whole(block, target, limits)

    expected = [bool(whole(block, H200)) for block in blocks]
    assert not any(expected)
    monkeypatch.setattr(sizes, "schedules", schedules)
    looks = sizes.Looks(H200)
    assert [looks.at(block) is not None for block in blocks] == expected
    keys = {(block.loops, frozenset(block.sizes)) for block in blocks}
    assert len(keys) <= len(counted) < len(blocks)


def test_those_that_come_nearest_are_looked_at_first() -> None:
    block = unlooped()[0]
    limits = ScheduleLimits(16, (4,), (4,))
    shape = sizes.Shape(block)

    def excess(schedule: object) -> float:
        used = sizes.usage(shape, schedule, H200)
        return max(used.shared / H200.shared, used.registers / sizes.MAX_REGISTERS)

    every = sorted(excess(one) for one in sizes.enumerate_schedules(shape, limits))
    near = sizes._nearest(shape, H200, limits)
    assert [excess(one) for one in near] == every[: len(near)]
