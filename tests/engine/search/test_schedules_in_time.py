"""Schedules when the time for them is over: a kernel that was found has some, and no more are looked for."""

from __future__ import annotations

from collections.abc import Callable

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.search.kernel_graphs.parts import PartTask
from mugraph.search.run import Search
from mugraph.search.schedules.split_schedules import kernel_candidates, split_candidates
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS

from tests.engine.search.workloads import rmsnorm_linear

H100 = TARGETS["h100"]


def blocks() -> list[BlockGraph]:
    return [found.block for found in Search(rmsnorm_linear(), Limits(max_block_ops=9)).run()]


def after(asked: int) -> Callable[[], bool]:
    """Over once it was asked so often."""
    left = iter([False] * asked)
    return lambda: next(left, True)


def test_when_the_time_is_over_one_topology_is_scheduled() -> None:
    every = kernel_candidates(blocks(), H100)
    few = kernel_candidates(blocks(), H100, over=lambda: True)
    assert few
    assert len({one.topology for one in few}) == 1
    assert len({one.topology for one in every}) > 1
    assert all(one.then is None for one in few)
    assert any(one.then is not None for one in every)


def test_more_time_gives_no_slower_kernels() -> None:
    best = [kernel_candidates(blocks(), H100, over=after(asked))[0].estimate_us for asked in (0, 4, 1000)]
    assert best == sorted(best, reverse=True)


def test_time_that_is_not_over_changes_nothing() -> None:
    def said(found: list[Candidate]) -> list[tuple[float, Schedule]]:
        return [(one.estimate_us, one.schedule) for one in found]

    given = blocks()
    assert said(kernel_candidates(given, H100)) == said(kernel_candidates(given, H100, over=lambda: False))


def test_a_part_whose_graph_has_no_time_left_has_what_was_found_for_it() -> None:
    task = PartTask(rmsnorm_linear(), H100, Limits(max_block_ops=9))
    every, few = task.run(), task.run(after(1000))
    assert 0 < len(few.candidates) <= len(every.candidates)


def test_no_further_split_is_begun_when_the_time_is_over() -> None:
    given, asked = blocks(), list[None]()
    every = split_candidates(given, H100, over=lambda: bool(asked.append(None)))
    few = split_candidates(given, H100, over=after(len(asked) - 2))
    assert 0 < len(few) < len(every)
    assert not split_candidates(given, H100, over=lambda: True)
