"""Tiles that are passed over hold nothing that would have been found."""

from __future__ import annotations

import pytest
from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.search import Limits, ScheduleLimits, estimate_us, schedules, topologies
from mugraph.search.schedules import sizes
from mugraph.search.schedules.bounds import least_of_tiles_us
from mugraph.search.schedules.sizes import enumerate_schedules, fits
from mugraph.search.schedules.splits import cuts
from mugraph.search.schedules.tiles import Shape
from mugraph.targets import TARGETS, Target

from tests.engine.search.workloads import WORKLOADS

EVERY = ScheduleLimits()


def blocks_of(name: str) -> list[BlockGraph]:
    """Topologies of one kernel, and the two kernels that some of them are split in."""
    found = [found.block for found in topologies(WORKLOADS[name](), Limits(seconds=1.0, max_topologies=2))][:4]
    return [*found, *(block for whole in found[:2] for cut in cuts(whole)[:1] for block in cut.at(4))]


def all_of(block: BlockGraph, target: Target) -> list[Candidate]:
    """Every schedule that fits, fastest by estimate first; of equal ones the first enumerated."""
    shape = Shape(block)
    found = [
        Candidate(block, schedule, estimate_us(shape, schedule, target))
        for schedule in enumerate_schedules(shape, EVERY)
        if fits(shape, schedule, target, EVERY)
    ]
    return sorted(found, key=lambda candidate: candidate.estimate_us)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
@pytest.mark.parametrize("target", ["a100", "h200"])
def test_the_best_schedules_are_those_of_all(name: str, target: str) -> None:
    device = TARGETS[target]
    for block in blocks_of(name):
        every = all_of(block, device)
        for most in (1, 16, 64):
            assert schedules(block, device, ScheduleLimits(max_candidates=most)) == every[:most]


@pytest.mark.parametrize("name", sorted(WORKLOADS))
@pytest.mark.parametrize("target", ["a100", "h200"])
def test_no_schedule_is_faster_than_the_least_of_its_tiles(name: str, target: str) -> None:
    device = TARGETS[target]
    for block in blocks_of(name):
        shape = Shape(block)
        for candidate in all_of(block, device):
            assert least_of_tiles_us(shape, candidate.schedule, device) <= candidate.estimate_us


def test_a_bound_that_is_too_high_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first test can fail: with a bound that is no bound, the best are not found."""

    def too_high(shape: Shape, schedule: Schedule, target: Target) -> float:
        return 1e6 / (1 + schedule.blocks(shape.sizes))

    device = TARGETS["h200"]

    def found(block: BlockGraph, limits: ScheduleLimits) -> list[Schedule]:
        return [schedule for _, schedule in sizes.listed(block, device, limits)]

    monkeypatch.setattr(sizes, "least_of_tiles_us", too_high)
    few = ScheduleLimits(max_candidates=16)
    blocks = [block for name in sorted(WORKLOADS) for block in blocks_of(name)]
    assert any(found(block, few) != [one.schedule for one in all_of(block, device)[:16]] for block in blocks)
