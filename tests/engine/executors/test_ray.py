"""On a real Ray cluster of two nodes on this machine, of which the one that works is killed in mid-search."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from mugraph.executors.executor import CannotExecute
from mugraph.executors.inline import Inline
from mugraph.executors.on_ray import OnRay
from mugraph.executors.parts import SpreadParts
from mugraph.executors.spread import SpreadSearch
from mugraph.executors.tasks import Task
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS
from mugraph.tune.measure import Refused
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.process import ChildProcess
from mugraph.tune.spread import SpreadMeasurer
from mugraph.tune.statistics import Summary

from tests.engine.search import workloads

GRAPHS = GraphLimits(max_parts=4, partitions=4, slack=20.0, each=Limits(seconds=5.0, max_topologies=3))

FAKE = (sys.executable, str(Path(__file__).parents[1] / "tune" / "fake_child.py"))
"""A measuring process that needs no GPU."""
_STORE = 80 * 2**20
"""Bytes of each node's object store; Ray takes no less."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head that works on nothing; nodes are added by the tests."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Ray gives its own processes so long to say that they are there; a machine that compiles beside it takes longer.
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    monkeypatch.setenv("RAY_gcs_server_request_timeout_seconds", "120")
    monkeypatch.setenv("RAY_worker_register_timeout_seconds", "240")
    utils: Any = importlib.import_module("ray.cluster_utils")
    head = {"num_cpus": 0, "object_store_memory": _STORE, "include_dashboard": False}
    made = utils.Cluster(initialize_head=True, head_node_args=head)
    try:
        yield made
    finally:
        made.shutdown()


def workers_of(executor: OnRay) -> list[psutil.Process]:
    """The processes of an executor's actors."""
    ask = cast("Task[int]", SimpleNamespace(run=os.getpid))
    asked = [executor.submit(ask) for _ in range(executor.workers)]
    return [psutil.Process(one.result(60)) for one in asked]


def kill(cluster: Any, node: Any, workers: list[psutil.Process]) -> None:
    """A node with its workers. Ray ends the node at once; its workers go on until they notice."""
    cluster.remove_node(node, allow_graceful=False)
    assert not psutil.wait_procs(workers, timeout=60)[1]


@pytest.mark.more
@pytest.mark.usefixtures("clock")
def test_a_node_killed_in_mid_search(cluster: Any, tmp_path: Path) -> None:
    """Nothing is lost and nothing doubled: the same topologies in the same order as in this process."""
    program, limits = workloads.residual_rmsnorm_linear(), Limits(max_block_ops=13)
    expected = [str(one.block) for one in SpreadSearch(program, limits, Inline()).run()]
    first = cluster.add_node(num_cpus=2, object_store_memory=_STORE)
    cluster.wait_for_nodes()
    executor = OnRay(cluster.address)
    try:
        executor.begin()
        assert executor.workers == 2

        search = SpreadSearch(program, limits, executor)
        assert [str(one.block) for one in search.run()] == expected
        assert search.losses == 0

        search = SpreadSearch(program, limits, executor)
        run = search.run()
        texts = [str(next(run).block)]
        workers = workers_of(executor)
        assert len({one.pid for one in workers}) == 2
        cluster.add_node(num_cpus=2, object_store_memory=_STORE)
        cluster.wait_for_nodes()
        kill(cluster, first, workers)
        texts += [str(one.block) for one in run]
        assert texts == expected
        assert search.losses >= 1
        assert executor.workers == 2
        assert search.stats.complete

        graphs = functools.partial(KernelGraphs, workloads.rmsnorm_linear(16, 64, 64), TARGETS["h200"], GRAPHS)
        parts = SpreadParts(executor)
        assert [one.candidates for one in graphs(workers=parts).run()] == [one.candidates for one in graphs().run()]
        assert parts.losses == 0

        stop = False
        search = SpreadSearch(workloads.norm_transformer(), Limits(seconds=1000), executor, lambda: stop)
        run = search.run()
        next(run)
        stop = True
        assert list(run) == []
        assert search.stats.ended_by == "cancelled"
        tuning_with_a_node_killed(cluster, executor, tmp_path)
    finally:
        executor.close()


def tuning_with_a_node_killed(cluster: Any, executor: OnRay, folder: Path) -> None:
    """Every candidate has its one time, in the candidates' order; where the cluster has no GPU, it is not asked."""
    assert executor.on_gpus() is None
    first = cluster.add_node(num_cpus=1, num_gpus=2, object_store_memory=_STORE)
    cluster.wait_for_nodes()
    gpus = executor.on_gpus()
    assert gpus is not None
    assert gpus.workers == 2
    with SpreadMeasurer(gpus, lambda: ChildProcess(FAKE), FAKE) as measurer:
        specs = (InputSpec((4,), (1,), "f16"),)
        (refused,) = measurer.measure_kernels([(Subject("bad_1", "", "run"), specs)])
        assert isinstance(refused, Refused)
        cluster.add_node(num_cpus=1, num_gpus=2, object_store_memory=_STORE)
        cluster.wait_for_nodes()
        # Two that no worker answers the first time that it is asked.
        subjects = [
            Subject(f"{'once' if number in (4, 5) else 'slow'}_{number}", str(folder), "run") for number in range(12)
        ]
        workers = workers_of(gpus)
        results = measurer.measure_kernels([(subject, specs) for subject in subjects], rounds=3)
        times = [next(results), next(results)]
        while len([*folder.iterdir()]) < 2:
            time.sleep(0.05)
        kill(cluster, first, workers)
        times += list(results)
        assert [one.median_us for one in times if isinstance(one, Summary)] == list(map(float, range(12)))
        assert measurer.losses >= 1
        assert gpus.workers == 2
    gpus.close()


def test_no_cluster_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    with pytest.raises(CannotExecute, match=r"there is no Ray cluster at 127\.0\.0\.1:1"):
        OnRay("127.0.0.1:1")


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(CannotExecute, match=r"pip install 'mugraph\[ray\]'"):
        OnRay()
    assert "RAY_USAGE_STATS_ENABLED" in os.environ
