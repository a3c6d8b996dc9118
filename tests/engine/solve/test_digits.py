"""Kernels round to TF32 only where PyTorch was seen to on the device, whatever its settings allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from mugraph.ir.names import Scope
from mugraph.ir.region import SearchUnit, Trace
from mugraph.options import Options
from mugraph.solve.job import RegionJob
from mugraph.solve.layouts import other_layouts, takes_tf32
from mugraph.solve.tools import Tools
from mugraph.solve.traced_again import possible_units
from mugraph.store import Store

from tests.engine.solve.machine import HERE, TARGET, Machine

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[4, 64, 32, 32], first=f32[64, 64, 1, 1], second=f32[64, 64, 1, 1], third=f32[32, 64, 1, 1]
def pointwise(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor, third: torch.Tensor) -> torch.Tensor:
    x = F.relu(F.conv2d(x, first))
    x = F.relu(F.conv2d(x, second))
    return F.relu(F.conv2d(x, third))


# mugraph: x=f32[128, 8, 128, 128], w=f32[64, 8, 3, 3], b=f32[64]
def picture(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.leaky_relu(F.conv2d(x, w, b) / 2)


# mugraph: x=f32[64, 64], weight=f32[64, 128]
def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.relu(x @ weight)
"""


def begun(trace: Trace, name: str, machine: Machine | None, store: Store | None = None) -> RegionJob:
    """The job of the function's region, that has asked what it has to."""
    it = cast(Any, machine)
    tools = Tools(TARGET, it, compiled=machine is not None, measurer=it, units=it)
    (number,) = [n for n, region in enumerate(trace.regions) if region.function == name]
    region, path = trace.regions[number], Path(trace.path)
    together = cast(Any, Nobody())
    job = RegionJob(number, region, Scope(()), HERE, tools, Options(), store, lambda: False, path, together=together)
    job.begin()
    return job


class Nobody:
    """Solves nothing beside others."""

    def add(self, *_: object, **__: object) -> None: ...


def units_of(job: RegionJob) -> list[SearchUnit]:
    return [part for part in job.cuts.of()[1] if isinstance(part, SearchUnit)]


def test_what_keeps_its_digits_has_exact_kernels(trace: Trace) -> None:
    machine = Machine(keeps=True)
    job = begun(trace, "pointwise", machine)
    assert units_of(job)
    assert not any(map(takes_tf32, units_of(job)))
    assert len(machine.asked) == 2, "two of the convolutions are alike"
    assert all(subject.tf32 == ("cudnn",) and "conv2d" in subject.source for subject in machine.asked)
    known = [*possible_units(job.region)]
    assert all(unit in known for unit in units_of(job)), "mugraph check finds the program again"


@pytest.mark.parametrize("keeps", [False, None])
def test_what_does_not_or_is_not_known_to_may_round(trace: Trace, keeps: bool | None) -> None:
    assert any(map(takes_tf32, units_of(begun(trace, "pointwise", Machine(keeps=keeps)))))


def test_a_unit_of_which_one_call_rounds_may_round(trace: Trace) -> None:
    class Some(Machine):
        def keeps_digits(self, subject: Any, inputs: Any) -> bool:
            return inputs[1].shape[0] == 64

    job = begun(trace, "pointwise", Some())
    for unit in units_of(job):
        exact = all(call.exact for call in unit.calls if call.tf32)
        assert takes_tf32(unit) is not exact
    assert any(map(takes_tf32, units_of(job)))


def test_it_is_not_turned_to_where_it_would_round(trace: Trace) -> None:
    def turned(keeps: bool) -> bool:
        cuts = begun(trace, "picture", Machine(keeps=keeps)).cuts
        _, parts = cuts.first(cuts.of())
        return any("memory_format" in call.kwargs for part in parts for call in part.calls)

    assert turned(False)
    assert not turned(True)
    assert other_layouts(begun(trace, "picture", Machine(keeps=True)).cuts.recorded) is None


def test_nothing_is_asked_without_a_device_or_without_tf32(trace: Trace) -> None:
    machine = Machine()
    begun(trace, "product", machine)
    assert not machine.asked
    assert any(map(takes_tf32, units_of(begun(trace, "pointwise", None))))


def test_the_answer_is_kept(trace: Trace, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "results.db")
    begun(trace, "pointwise", Machine(keeps=True), store)
    again = Machine(keeps=False)
    assert not any(map(takes_tf32, units_of(begun(trace, "pointwise", again, store))))
    assert not again.asked
    unknown = Machine(keeps=None)
    begun(trace, "picture", unknown, store)
    begun(trace, "picture", unknown, store)
    assert len(unknown.asked) == 2, "what could not be told is asked again"
