"""Parts of kernel graphs in other processes: the same graphs in the same order, whoever dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest
from mugraph.executors.executor import Executor, Lost
from mugraph.executors.inline import Inline
from mugraph.executors.parts import SpreadParts
from mugraph.executors.processes import Processes
from mugraph.executors.turns import Start
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.parts import PartTask
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS

from tests.engine.search import workloads
from tests.support.clock import slow_clock

H200 = TARGETS["h200"]
PROGRAM = workloads.rmsnorm_linear(16, 64, 64)
LIMITS = GraphLimits(max_parts=6, partitions=4, slack=20.0, each=Limits(seconds=5.0, max_topologies=3))


def graphs(workers: SpreadParts | None, limits: GraphLimits = LIMITS) -> Iterator[str]:
    """Every candidate with its schedules and its estimate."""
    with slow_clock():
        for found in KernelGraphs(PROGRAM, H200, limits, seconds=600.0, workers=workers).run():
            yield "\n".join(str(candidate) for candidate in found.candidates)


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return list(graphs(None))


def test_the_same_in_the_same_order(expected: list[str]) -> None:
    assert len(expected) > 1
    executor = Processes(2)
    try:
        workers = SpreadParts(executor)
        assert list(graphs(workers)) == expected
        assert workers.losses == 0
        assert len(executor.pids) == 2
    finally:
        executor.close()
    assert list(graphs(SpreadParts(Inline()))) == expected


def test_workers_that_are_killed_or_cannot_start_cost_nothing(expected: list[str]) -> None:
    executor = Processes(2)
    try:
        workers = SpreadParts(executor)
        run = graphs(workers)
        texts = [next(run)]
        task = PartTask(PROGRAM, H200, Limits(seconds=1.0))
        begun = workers.begin(task)
        for pid in executor.pids:
            os.kill(pid, signal.SIGKILL)
        texts += list(run)
        assert texts == expected
        assert workers.result(task, begun, lambda: False) == task.run()
        assert workers.losses >= 1
    finally:
        executor.close()
    for command in ((sys.executable, "-c", "raise SystemExit(3)"), ("/nowhere/python",)):
        dying: Executor = Processes(2, command)
        assert list(graphs(SpreadParts(dying))) == expected
        dying.close()


def test_cancelled_while_another_process_works() -> None:
    executor = Processes(1)
    workers = SpreadParts(executor)
    task = PartTask(workloads.norm_transformer(d=64), H200, Limits(seconds=1000))
    begun = workers.begin(task)
    end = time.monotonic() + 0.3
    assert workers.result(task, begun, lambda: time.monotonic() > end) is None
    assert executor.pids == []
    executor.close()


def test_an_interruption_ends_those_that_have_work() -> None:
    executor = Processes(3)
    try:
        executor.begin()
        every = executor.pids
        assert len(every) == 3
        seated = executor.seat(Start(PROGRAM, (), Limits())).pid
        task = PartTask(workloads.norm_transformer(d=64), H200, Limits(seconds=1000))
        working = executor.submit(task)
        executor.interrupt()
        with pytest.raises(Lost):
            working.result(timeout=30)
        assert seated not in executor.pids
        assert set(executor.pids) < set(every), "none is begun by it"
        assert len(executor.pids) >= 1, "and one had nothing to do"
        quick = PartTask(PROGRAM, H200, Limits(seconds=1.0))
        assert executor.submit(quick).result() == quick.run()
    finally:
        executor.close()
