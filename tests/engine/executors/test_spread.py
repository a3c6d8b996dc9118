"""Whoever works on the nests, and whoever of them dies: the same is found, in the same order, once."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import psutil
import pytest
from mugraph.executors.choose import choose
from mugraph.executors.executor import CannotExecute, Executor
from mugraph.executors.inline import Inline
from mugraph.executors.processes import Processes
from mugraph.executors.spread import SpreadSearch
from mugraph.ir.program import TensorProgram
from mugraph.search.run import Search
from mugraph.search.topologies.limits import Limits, NotSearchable

from tests.engine.search import workloads
from tests.support.clock import Clock

PROGRAMS: Sequence[Callable[[], TensorProgram]] = (
    workloads.rmsnorm_linear,
    workloads.residual_rmsnorm_linear,
    workloads.rmsnorm_gated_mlp,
    workloads.lora,
    workloads.attention,
    workloads.gemm_chain,
)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    executor = Processes(3)
    executor.begin()
    yield executor
    pids = executor.pids
    executor.close()
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def found(search: SpreadSearch | Search) -> list[str]:
    return [str(one.block) for one in search.run()]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda make: make.__name__)
def test_the_same_as_a_search_in_one_process(program: Callable[[], TensorProgram], processes: Processes) -> None:
    plain = Search(program())
    here, there = (SpreadSearch(program(), None, executor) for executor in (Inline(), processes))
    expected, blocks = found(plain), found(here)
    assert found(there) == blocks
    assert sorted(blocks) == sorted(expected)
    for search in (here, there):
        stats = search.stats
        assert (stats.topologies, stats.complete, stats.complete_to, stats.ended_by) == (
            plain.stats.topologies,
            plain.stats.complete,
            plain.stats.complete_to,
            plain.stats.ended_by,
        )
    assert len(set(expected)) == len(expected)


@pytest.mark.parametrize("seconds", [0.3, 1.0])
def test_a_search_that_ends_by_work_ends_at_the_same_place(seconds: float, processes: Processes, clock: Clock) -> None:
    """However many workers there are."""
    limits = Limits(max_block_ops=13, seconds=seconds * 40, max_topologies=64)
    small = Limits(limits.max_block_ops, limits.slack, seconds, 2, 64, 400, limits.memory)
    here, there = (SpreadSearch(workloads.rmsnorm_gated_mlp(), small, executor) for executor in (Inline(), processes))
    assert found(here) == found(there)
    assert here.stats.pruned == there.stats.pruned
    assert here.stats.ended_by == there.stats.ended_by != "space"


def test_a_process_killed_in_mid_search_costs_nothing() -> None:
    program, limits = workloads.residual_rmsnorm_linear(), Limits(max_block_ops=13)
    expected = found(SpreadSearch(program, limits, Inline()))
    executor = Processes(2)
    search = SpreadSearch(program, limits, executor)
    run = search.run()
    texts = [str(next(run).block)]
    for pid in executor.pids:
        os.kill(pid, signal.SIGKILL)
    texts += [str(one.block) for one in run]
    executor.close()
    assert texts == expected
    assert search.losses >= 2
    assert search.stats.ended_by == "size"


def test_workers_that_always_die_are_done_without() -> None:
    program = workloads.lora()
    executor = Processes(2, (sys.executable, "-c", "raise SystemExit(3)"))
    search = SpreadSearch(program, None, executor)
    assert found(search) == found(SpreadSearch(program, None, Inline()))
    assert search.losses >= 3
    executor.close()


def test_workers_that_cannot_be_started_are_done_without() -> None:
    program = workloads.lora()
    executor = Processes(2, ("/nowhere/python",))
    executor.begin()
    assert found(SpreadSearch(program, None, executor)) == found(SpreadSearch(program, None, Inline()))
    executor.close()


def test_cancelled_in_the_middle_of_a_turn() -> None:
    """Nothing is left that works on, and the executor can be used again."""
    executor = Processes(2)
    stop = False
    search = SpreadSearch(workloads.norm_transformer(d=64), Limits(seconds=1000), executor, lambda: stop)
    run = search.run()
    next(run)
    pids = executor.pids
    assert pids
    stop = True
    assert list(run) == []
    assert search.stats.ended_by == "cancelled"
    deadline = time.monotonic() + 10
    while any(psutil.pid_exists(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert found(SpreadSearch(workloads.lora(), None, executor)) == found(
        SpreadSearch(workloads.lora(), None, Inline())
    )
    executor.close()


def test_given_up_by_who_asked() -> None:
    """A search that is not read to its end leaves nothing under way."""
    executor = Processes(2)
    run = SpreadSearch(workloads.norm_transformer(), None, executor).run()
    next(run)
    del run
    assert len(list(SpreadSearch(workloads.gated_mlp(), None, executor).run())) == 2
    executor.close()


def test_what_the_search_does_not_cover_is_refused_before_it_begins(processes: Processes) -> None:
    builder = workloads.Builder("two", m=4)
    x = builder.input("x", "m")
    one = builder.mul("a", x, x)
    program = builder.program(one)
    with pytest.raises(NotSearchable):
        SpreadSearch(TensorProgram("none", program.sizes, program.tensors, program.ops, {}), None, processes)


@pytest.mark.parametrize("name", ["", "process", "processes:0", "processes:x", "ray:x", "dask"])
def test_an_unknown_executor_is_named(name: str) -> None:
    with pytest.raises(CannotExecute, match="there is no executor"):
        choose(name)


def test_executors_by_name() -> None:
    names: dict[str, type[Executor]] = {"inline": Inline, "processes": Processes, "processes:3": Processes}
    for name, kind in names.items():
        executor = choose(name)
        assert isinstance(executor, kind)
        executor.close()
    assert choose("processes:3").workers == 3
