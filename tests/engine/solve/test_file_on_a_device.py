"""A file with several search units on a device that is stood in for: they are searched elsewhere, measured within the
file's time, and what was measured by its end is offered."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mugraph.events import Done, FileResult
from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.pipeline import run_trace
from mugraph.solve import unit_task
from mugraph.solve.filetime import FileTime
from mugraph.solve.tools import Tools

from tests.engine.solve.machine import HERE, TARGET, Machine

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[4096, 4096], y=f32[4096, 4096]
def large(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * y + 1) * torch.sigmoid(y)


# mugraph: x=f32[1024, 1024]
def small(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.relu(x * 2) - 1)


# mugraph: x=f32[2048, 1024]
def rows(x: torch.Tensor) -> torch.Tensor:
    return F.relu(x) / F.relu(x).sum(1, keepdim=True)


# mugraph: x=f32[2048, 1024]
def same_rows(x: torch.Tensor) -> torch.Tensor:
    return F.relu(x) / F.relu(x).sum(1, keepdim=True)
"""


@dataclass
class Here:
    """Works in this process, at once. searched: units, in order"""

    searched: list[str] = field(default_factory=list[str])
    workers: int = 2
    pids: tuple[int, ...] = ()

    def begin(self) -> None:
        pass

    def submit(self, task: Any) -> Future[Any]:
        self.searched.append(task.unit.place.function)
        future: Future[Any] = Future()
        future.set_result(task.run())
        return future

    def interrupt(self) -> None:
        pass


@dataclass
class Timed(Machine):
    """Seconds go while something is measured. takes_s: one kernel"""

    takes_s: float = 0.1

    def _measured(self, us: float) -> Any:
        before = self.seconds
        found = super()._measured(us)
        self.seconds = before + self.takes_s
        return found


def done(
    trace: Trace, machine: Timed, limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[FileResult, Here, Tools]:
    it, here = cast(Any, machine), Here()
    searching = Tools(TARGET, it, compare_with="code")
    monkeypatch.setattr(unit_task, "_tools", lambda *_: searching)
    monkeypatch.setattr("mugraph.pipeline.FileTime", lambda _, **__: FileTime(limit_s, lambda: machine.seconds))
    tools = Tools(
        TARGET, it, compiled=True, measurer=it, pool=it, peers=None, compare_with="code", units=cast(Any, here)
    )
    options = Options(budget_s=2.0, max_kernels=1, compare_with="code")
    for event in run_trace(trace, HERE, TARGET, options, tools=tools):
        if isinstance(event, Done):
            return event.result, here, tools
    raise AssertionError("it has no result")


def test_all_are_measured_where_there_is_time(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Timed()
    result, here, _ = done(trace, machine, 1000.0, monkeypatch)
    assert [region.status for region in result.regions] == ["improved"] * 4
    assert all(unit.lowering is not None for region in result.regions for unit in region.units)
    assert here.searched[0] == "large"
    assert sorted(here.searched) == ["large", "rows", "small"], "what is the same is searched, and measured, once"
    assert all(region.timing.source == "measured" for region in result.regions)


def test_when_the_time_is_over_what_gains_most_was_measured_and_is_offered(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Timed(takes_s=1.0)
    result, _, tools = done(trace, machine, 4.0, monkeypatch)
    status = {region.region.function: region.status for region in result.regions}
    assert status["large"] == "improved"
    assert status["small"] == "no-gain"
    late = next(region for region in result.regions if region.region.function == "small")
    assert late.units[0].late
    assert late.units[0].solution is not None
    assert not late.units[0].solution.tested
    assert "--file-budget" in (late.reason or "")
    assert tools.file_time.is_over


def test_fewer_kernels_are_measured_where_there_are_fewer_seconds(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    much, little = Timed(), Timed(takes_s=0.5)
    done(trace, much, 1000.0, monkeypatch)
    done(trace, little, 8.0, monkeypatch)
    assert little.log.count("measures") < much.log.count("measures") / 2


@pytest.mark.parametrize("ran", [False, True])
def test_a_measurer_that_has_run_the_users_code_ends_with_the_file(ran: bool) -> None:
    """It knows the file's modules as they were. Where nothing of them was run there, it goes on."""
    said: list[str] = []
    measurer = SimpleNamespace(
        ran_users_code=ran, end=lambda: said.append("ends"), release=lambda: said.append("releases")
    )
    tester = SimpleNamespace(release=lambda: None)
    Tools(TARGET, cast(Any, tester), measurer=cast(Any, measurer)).release()
    assert said == (["ends"] if ran else []) + ["releases"]
