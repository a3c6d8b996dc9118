"""Ways to divide a region: their units are solved side by side, and of near ones the plans decide."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from mugraph.events import Event, Timing
from mugraph.ir.names import Scope
from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.solve import job as jobs
from mugraph.solve.job import RegionJob
from mugraph.solve.tools import Tools

from tests.engine.solve.machine import HERE, TARGET, Machine

TEXT = """\
import torch


# mugraph: x=f32[64, 64]
def small(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.relu(x * 2) - 1)
"""


def job_of(trace: Trace) -> RegionJob:
    tools = Tools(TARGET, cast(Any, Machine()))
    return RegionJob(0, trace.regions[0], Scope(()), HERE, tools, Options(), None, lambda: False, Path(trace.path))


@dataclass
class Way:
    """A division that is estimated, alone and as a plan; None: it has none."""

    alone_us: float
    plan_us: float | None
    parts: list[str] = field(default_factory=list[str])
    results: list[object] = field(default_factory=list[object])

    def us(self, _: object) -> float:
        return self.alone_us

    @property
    def parts_made(self) -> int:
        return id(self)


def ended(steps: Generator[Event, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize(
    ("ways", "best"),
    [
        ([Way(48.3, 48.6), Way(57.1, 59.0), Way(47.9, 61.0)], 0),  # what turns a convolution nobody reads turned
        ([Way(48.3, 62.0), Way(47.9, 61.0)], 1),
        ([Way(48.3, None), Way(47.9, 61.0)], 1),
        ([Way(80.0, 10.0), Way(47.9, 61.0)], 1),  # not near
        ([Way(48.3, None), Way(47.9, None)], 1),
    ],
)
def test_of_near_ways_the_plans_decide(
    trace: Trace, ways: Sequence[Way], best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(trace)
    job._divisions = cast(Any, ways)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(job, "_planned", lambda way: (way if way.plan_us is not None else None, {}))
    monkeypatch.setattr(job.timer, "estimated", lambda way, _: Timing(optimized_us=way.plan_us))
    assert ended(job._fastest()) is ways[best]  # pyright: ignore[reportPrivateUsage]


def test_units_of_a_mixed_way_are_begun_before_they_are_asked_for(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searched here, one after the other, they had half of a model's time."""
    log: list[tuple[str, object]] = []
    job = job_of(trace)
    mixed = object(), ("unit", "calls")

    def divided(cut: Any, _: object) -> Generator[Event, None, list[Any]]:
        yield from ()
        log.append(("divided", cut[1]))
        return []

    job._divisions = cast(Any, [Way(1.0, 1.0, ["apart"]), Way(1.0, 1.0)])  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(jobs, "to_leave", lambda *_: [frozenset({1})])
    monkeypatch.setattr(job.cuts, "of", lambda _=(): mixed)
    monkeypatch.setattr(job, "_begin", lambda parts: log.append(("begun", parts)))
    monkeypatch.setattr(job, "_divided", divided)
    ended(job._mixed(cast(Any, (object(), ())), [], []))  # pyright: ignore[reportPrivateUsage]
    assert log == [("begun", mixed[1]), ("divided", mixed[1])]
