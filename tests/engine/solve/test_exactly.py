"""What is refused for its digits is tried once more with kernels that keep them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

import pytest
from mugraph.events import Event, RegionResult, Timing
from mugraph.ir.region import SearchUnit, Trace
from mugraph.solve.job import RegionJob
from mugraph.solve.layouts import exactly, takes_tf32
from mugraph.solve.traced_again import possible_units
from mugraph.tune.messages import DIFFERS

from tests.engine.solve.machine import Machine
from tests.engine.solve.solving import solved

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[4, 64, 32, 32], weight=f32[128, 64, 1, 1]
def pointwise(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.relu(F.conv2d(x, weight))


# mugraph: x=f32[64, 64], weight=f32[64, 128]
def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.relu(x @ weight)
"""


def units_of(job: RegionJob) -> list[SearchUnit]:
    return [part for part in job.cuts.of()[1] if isinstance(part, SearchUnit)]


def run(trace: Trace, monkeypatch: pytest.MonkeyPatch, name: str, *, refused: bool) -> tuple[list[bool], RegionResult]:
    """Whether kernels of each attempt may round to tf32. refused: those that may, for their digits; else they gain
    nothing"""
    rounds: list[bool] = []

    def attempt(job: RegionJob) -> Generator[Event, None, RegionResult]:
        yield from ()
        job._divisions.append(cast(Any, None))
        rounds.append(any(map(takes_tf32, units_of(job))))
        if rounds[-1]:
            return RegionResult(job.region, "no-gain", f"{DIFFERS} by 2e-4" if refused else "it is slower")
        return RegionResult(job.region, "improved", timing=Timing(12.0, 6.0, 2.0, source="measured"))

    monkeypatch.setattr(RegionJob, "_searched_so", attempt)
    return rounds, solved(trace, name, Machine())


def test_kernels_that_keep_the_digits_are_offered(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, result = run(trace, monkeypatch, "pointwise", refused=True)
    assert (rounds[0], rounds[-1], result.status) == (True, False, "improved")


def test_what_is_slower_is_not_tried_again(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, result = run(trace, monkeypatch, "pointwise", refused=False)
    assert all(rounds)
    assert result.status == "no-gain"


def test_a_product_in_float32_is_solved_once(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, result = run(trace, monkeypatch, "product", refused=True)
    assert (rounds, result.status) == ([False], "improved")


def test_such_units_are_known_when_a_kernel_is_checked_again(trace: Trace) -> None:
    region = next(one for one in trace.regions if one.function == "pointwise")
    units = [*possible_units(region)]
    rounded = [unit for unit in units if takes_tf32(unit)]
    assert rounded
    assert all(exactly(unit) in units for unit in rounded)
    assert not any(map(takes_tf32, map(exactly, units)))
