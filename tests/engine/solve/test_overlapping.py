"""Kernels of a plan that start while the kernel before them ends: which can, and when they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from mugraph.codegen.early import WAIT
from mugraph.edit.module.evidence import evidence
from mugraph.events import RegionResult
from mugraph.ir.region import Trace
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.reports.text import early_words
from mugraph.solve.overlapping import USUAL, early_sources, faster
from mugraph.store import Store
from mugraph.targets import TARGETS
from mugraph.tune.measure import Compared, Refused
from mugraph.tune.messages import Subject
from mugraph.tune.statistics import Summary

from tests.engine.solve.machine import TARGET
from tests.engine.solve.timed import Side, solved_when_timed

TEXT = """
import torch
import torch.nn.functional as F


# mugraph: x=f16[1, 256], a=f16[256, 256], b=f16[256, 256], g=f16[256]
def both(x, a, b, g):
    x = F.rms_norm(x, (256,), g, 1e-6) @ a
    return F.rms_norm(x, (256,), g, 1e-6) @ b


# mugraph: x=f16[1, 256], a=f16[256, 256], b=f16[256, 256], g=f16[256]
def apart(x, a, b, g):
    x = F.rms_norm(x, (256,), g, 1e-6) @ a
    x = torch.sort(x, dim=-1)[0].contiguous()
    return F.rms_norm(x, (256,), g, 1e-6) @ b
"""


@dataclass
class Early(Side):
    """Says how long the plan takes with kernels that start early, by what they do before they wait."""

    us: Mapping[str, float] = field(default_factory=lambda: {"loading": 9.0, "asking": 8.0})

    def check_texts(self, subjects: Sequence[Subject]) -> None:
        assert [WAIT in one.source for one in subjects] == [one.name != USUAL for one in subjects]
        assert ["prefetch.global" in one.source for one in subjects] == [one.name == "asking" for one in subjects]

    def is_of_a_way(self, text: str) -> bool:
        return WAIT in text


solved = partial(solved_when_timed, name="both")


def text_of(result: RegionResult) -> str:
    return "\n".join(source.standalone() for source in result.sources.values())


def plan_of(result: RegionResult) -> RegionPlan:
    assert result.status == "improved", result.reason
    assert result.plan is not None
    return result.plan


@pytest.mark.parametrize(
    ("us", "kept"),
    [
        ({"loading": 9.0, "asking": 8.0}, "asking"),
        ({"loading": 8.0, "asking": 9.0}, "loading"),
        ({"loading": 9.99, "asking": 9.99}, None),
        ({"loading": 11.0, "asking": 12.0}, None),
    ],
)
def test_the_fastest_is_kept(us: dict[str, float], kept: str | None, trace: Trace) -> None:
    machine = Early(us=us)
    result = solved(trace, machine)
    plan = plan_of(result)
    kernels = [one for step in plan.steps if isinstance(step, KernelStep) for one in step.kernels]
    assert len(kernels) == 2
    assert machine.timed[0] == [USUAL, "loading", "asking"]
    text = text_of(result)
    assert text.count(WAIT) == text.count("launch_pdl=True") == (kept is not None)
    assert ("prefetch.global" in text) == (kept == "asking")
    assert early_words(result) == ("1 of 2 kernels starts while the kernel before it ends" if kept else "")
    said = "starts while the kernel before it ends"
    assert (said in " ".join(evidence(plan, result.sources, None).replace("#", " ").split())) == (kept is not None)


@pytest.mark.parametrize("why", ["its results", "another result", "its text"])
def test_one_that_is_wrong_is_not_kept(why: str, trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Early(right=why != "its results", agrees=why != "another result")
    if why == "its text":
        monkeypatch.setattr("mugraph.codegen.early.WAIT", "pass")
        monkeypatch.setattr(f"{__name__}.WAIT", "launch_pdl=True")
    result = solved(trace, machine)
    assert plan_of(result)
    assert "launch_pdl" not in text_of(result)


def test_it_is_measured_once(trace: Trace, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        first = solved(trace, Early(), store=store)
        machine = Early(us={"loading": 20.0, "asking": 20.0})
        again = solved(trace, machine, store=store)
    assert not any(USUAL in names for names in machine.timed)
    assert text_of(first) == text_of(again)
    assert WAIT in text_of(again)


@pytest.mark.parametrize("without", ["the setting", "a device that can", "measuring"])
def test_it_is_not_tried(without: str, trace: Trace) -> None:
    machine = Early()
    result = solved(
        trace,
        machine,
        target=TARGETS["a100"] if without == "a device that can" else TARGET,
        overlap=without != "the setting",
        measured=without != "measuring",
    )
    assert not any(USUAL in names for names in machine.timed)
    assert "launch_pdl" not in text_of(result)


def test_none_starts_early_after_a_call_of_pytorchs(trace: Trace) -> None:
    result = solved(trace, Early(), name="apart")
    plan = plan_of(result)
    assert sum(isinstance(step, KernelStep) for step in plan.steps) == 2
    assert early_sources(plan, result.sources) is result.sources


def test_faster_on_one_clock_and_slower_on_none() -> None:
    def compared(device: float | None, called: float | None) -> Compared:
        of = {"device": device, "called": called}
        found: dict[str, dict[str, Summary | Refused]] = {
            clock: {
                USUAL: Summary(100.0, 0.1, 40),
                "loading": Summary(us, 0.1, 40) if us is not None else Refused("it cannot be run"),
            }
            for clock, us in of.items()
        }
        return Compared(found["device"], found["called"])

    assert faster(compared(90.0, 90.0)) == faster(compared(90.0, 99.0)) == faster(compared(99.5, 90.0)) == ["loading"]
    for device, called in ((99.5, 99.5), (90.0, 110.0), (110.0, 90.0), (None, 90.0), (90.0, None)):
        assert faster(compared(device, called)) == []
