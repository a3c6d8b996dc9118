"""What a kernel reads once is the first to leave the cache where that pays: by rule, or as the schedule says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.eviction import evicts_first
from mugraph.search.direct import as_block
from mugraph.search.schedules.neighbours import neighbours
from mugraph.search.schedules.sizes import schedules
from mugraph.targets import TARGETS

from tests.engine.search.workloads import Builder

HINT = "evict_first"


def shifted() -> BlockGraph:
    """Writes as much as it reads."""
    b = Builder("shifted", s=4096, d=512)
    return as_block(b.program(b.add("y", b.input("x", "s", "d"), b.input("w", "d")), "s", "d"))


def squared_sum() -> BlockGraph:
    """Writes one number for each row that it reads."""
    b = Builder("squared_sum", s=4096, d=512)
    x = b.input("x", "s", "d")
    return as_block(b.program(b.sum("y", b.mul("squared", x, x), "d"), "s"))


def text_of(block: BlockGraph, schedule: Schedule) -> str:
    return lower_kernels([(block, schedule)], outputs=["y"]).jit


@pytest.mark.parametrize(("make", "by_rule"), [(shifted, False), (squared_sum, True)])
def test_by_rule_or_as_the_schedule_says(make: Callable[[], BlockGraph], by_rule: bool) -> None:
    block = make()
    best = schedules(block, TARGETS["h200"])[0].schedule
    assert evicts_first(block, best) == by_rule
    assert (HINT in text_of(block, best)) == by_rule
    for said in (True, False):
        assert (HINT in text_of(block, replace(best, evict=said))) == said


@pytest.mark.parametrize("make", [shifted, squared_sum])
def test_the_other_is_one_step_away(make: Callable[[], BlockGraph]) -> None:
    best = schedules(make(), TARGETS["h200"])[0]
    (other,) = (one for one in neighbours(best, TARGETS["h200"]) if one.schedule.evict is not None)
    assert other.schedule == replace(best.schedule, evict=not evicts_first(best.block, best.schedule))
    assert (HINT in text_of(other.block, other.schedule)) != (HINT in text_of(best.block, best.schedule))
    assert best.schedule in [one.schedule for one in neighbours(other, TARGETS["h200"])], "and back"


def test_none_where_all_blocks_read_the_same() -> None:
    b = Builder("outer", m=512, n=512)
    block = as_block(b.program(b.mul("y", b.input("x", "m"), b.input("w", "n")), "m", "n"))
    best = schedules(block, TARGETS["h200"])[0]
    assert len(best.schedule.grid) == 2
    assert all(one.schedule.evict is None for one in neighbours(best, TARGETS["h200"]))
    assert HINT not in text_of(block, replace(best.schedule, evict=True))
