"""A network of convolutions, whole regions of which may lie channels last: which plan is kept, and that it is right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.edit.module.runtime import RUNTIME, RUNTIME_NAME
from mugraph.events import Event, RegionResult, Solution, Timing
from mugraph.ir.names import Scope
from mugraph.ir.region import PlainCalls, Trace
from mugraph.options import Options
from mugraph.plans.plan import KernelStep
from mugraph.solve.cuts import Cuts
from mugraph.solve.filetime import FileTime
from mugraph.solve.job import RegionJob
from mugraph.solve.layouts import layouts
from mugraph.solve.pytorch import kept_us
from mugraph.solve.tools import Tools
from mugraph.solve.traced_again import possible_units
from mugraph.units import chains
from mugraph.units.layouts import FASTER, WHOLE, Layout
from mugraph.units.whole_last import copies

from tests.engine.solve.machine import HERE, TARGET, Machine
from tests.engine.solve.solving import solved

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[2, 8, 12, 12], stem=f32[8, 8, 3, 3], a=f32[8], one=f32[8, 8, 1, 1], three=f32[8, 8, 3, 3]
# mugraph: last=f32[8, 16, 3, 3], head=f32[8, 8]
def network(x: torch.Tensor, stem: torch.Tensor, a: torch.Tensor, one: torch.Tensor, three: torch.Tensor,
            last: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
    x = F.relu(F.conv2d(x, stem, a, padding=1))
    left = F.relu(F.conv2d(F.max_pool2d(x, 2), one, a))
    right = F.relu(F.adaptive_avg_pool2d(F.conv2d(x, three, a, padding=1), 6))
    x = F.relu(F.conv2d(torch.cat([left, right], 1), last, a, padding=1))
    x = F.adaptive_avg_pool2d(x, (1, 1))
    return x.view(x.size(0), -1) @ head
"""


@dataclass
class Orders:
    """Stands for solving and measuring a region's units. us: of a plan of each choice; none where it is not offered.
    tried: the choices that were measured, in order"""

    us: Mapping[Layout, float]
    tried: list[Layout] = field(default_factory=list[Layout])

    def solved(self, job: RegionJob) -> Generator[Event, None, RegionResult]:
        yield from ()
        layout = job.cuts.turned
        job._divisions.append(cast(Any, None))
        self.tried.append(layout)
        if layout not in self.us:
            return RegionResult(job.region, "no-gain")
        timing = Timing(12.0, self.us[layout], 12.0 / self.us[layout], source="measured")
        return RegionResult(job.region, "improved", timing=timing)

    def best(self, trace: Trace, monkeypatch: pytest.MonkeyPatch, *, expected: Mapping[Layout, float]) -> float | None:
        """Microseconds of what is kept."""
        monkeypatch.setattr(RegionJob, "_searched_so", lambda job: self.solved(job))
        monkeypatch.setattr(Cuts, "layouts", lambda _: dict(expected))
        return solved(trace, "network", Machine()).timing.optimized_us


def is_whole(source: str) -> bool:
    """Is only what enters turned, of five convolutions?"""
    return source.count("memory_format=torch.channels_last") == 1


@pytest.fixture(scope="module")
def result(trace: Trace) -> RegionResult:
    """Without a GPU."""
    return solved(trace, "network", None)


def turns(result: RegionResult) -> int:
    assert result.plan is not None
    plain = [call for step in result.plan.steps if isinstance(step, PlainCalls) for call in step.calls]
    return len(copies(result.plan.region, plain))


def test_by_estimate_the_network_is_turned_once(trace: Trace, result: RegionResult) -> None:
    assert result.status == "improved", result.reason
    assert result.plan is not None
    assert result.plan.region.relaid is not None
    assert turns(result) == 1
    assert result.plan.region.calls == trace.regions[0].calls, "what it is compared with is as recorded"
    assert result.timing.source == "estimated"


def test_the_other_side_of_the_estimate_is_the_code(trace: Trace, result: RegionResult) -> None:
    assert result.plan is not None
    region = result.plan.region
    usual = kept_us(trace.regions[0], trace.regions[0].calls, None, TARGET)
    made = kept_us(region, region.as_made.calls, None, TARGET)
    assert usual is not None
    assert made is not None
    assert made[0] == usual[0]


RUN = """\
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
import kernels
ours, reference, _, specs = kernels._CASES["network"]
torch.manual_seed(0)
given = [torch.empty_strided(shape, strides, dtype=dtype).normal_(0, scale) for shape, strides, dtype, scale in specs]
got, wanted = ours(*given), reference(*given)
torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
assert got.stride() == wanted.stride(), (got.stride(), wanted.stride())
"""


def test_its_module_computes_what_the_code_does(result: RegionResult, tmp_path: Path) -> None:
    text = module_of(result, tmp_path)
    assert is_whole(text)
    assert "x.contiguous(memory_format=torch.channels_last)" in text
    compute(text, tmp_path)


def test_so_it_does_where_kernels_turn_what_enters(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "LEAST_TURNED", 0)
    monkeypatch.setattr(Solution, "is_expected_to_pay", True)
    result = solved(trace, "network", None)
    assert result.plan is not None
    assert result.plan.region.relaid is not None
    assert any(isinstance(step, KernelStep) and step.unit.program.is_copy for step in result.plan.steps)
    compute(module_of(result, tmp_path), tmp_path)


def module_of(result: RegionResult, folder: Path) -> str:
    plan = result.plan
    assert plan is not None
    text = module_text([plan], result.sources, original_path=folder / "network.py", target=TARGET, alone=True)
    assert on_tensors(plan) in text
    return text


def compute(text: str, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(text)
    (tmp_path / f"{RUNTIME_NAME}.py").write_text(RUNTIME)
    there = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    subprocess.run([sys.executable, "-c", RUN], env=there, check=True, timeout=300)


NONE: Layout = frozenset()


@pytest.mark.parametrize(
    ("us", "expected", "tried"),
    [
        ({WHOLE: 4.0, FASTER: 6.0}, {WHOLE: 10.0, FASTER: 11.0, NONE: 0.0}, [WHOLE, FASTER]),
        ({WHOLE: 6.0, FASTER: 4.0}, {WHOLE: 10.0, FASTER: 11.0, NONE: 0.0}, [WHOLE, FASTER]),
        ({WHOLE: 6.0, FASTER: 4.0}, {FASTER: 10.0, WHOLE: 10.0, NONE: 0.0}, [FASTER, WHOLE]),
        ({WHOLE: 4.0, FASTER: 2.0}, {WHOLE: 10.0, FASTER: 13.0, NONE: 0.0}, [WHOLE]),
        ({FASTER: 4.0}, {WHOLE: 10.0, FASTER: 13.0, NONE: 0.0}, [WHOLE, FASTER]),
        ({NONE: 4.0}, {WHOLE: 10.0, FASTER: 11.0, NONE: 0.0}, [WHOLE, FASTER, NONE]),
        ({}, {WHOLE: 10.0, NONE: 0.0}, [WHOLE, NONE]),
    ],
)
def test_the_fastest_is_kept_and_what_is_hopeless_is_not_measured(
    trace: Trace,
    monkeypatch: pytest.MonkeyPatch,
    us: Mapping[Layout, float],
    expected: Mapping[Layout, float],
    tried: Sequence[Layout],
) -> None:
    """The order that the code has only where nothing else is offered."""
    orders = Orders(us)
    best = orders.best(trace, monkeypatch, expected=expected)
    assert orders.tried == tried
    assert best == (min(us[one] for one in tried if one in us) if us else None)


def test_what_is_expected_to_be_fastest_comes_first(trace: Trace) -> None:
    tools = Tools(TARGET, cast(Any, Machine()), measurer=cast(Any, Machine()), file_time=FileTime(500.0))
    (region,) = trace.regions
    job = RegionJob(0, region, Scope(()), HERE, tools, Options(), None, lambda: False, Path(trace.path))
    found = job.cuts.layouts()
    assert [*found] == [WHOLE, FASTER, NONE]
    assert 0 < found[WHOLE] <= found[FASTER]


def test_its_units_are_known_when_the_file_is_traced_again(trace: Trace, result: RegionResult) -> None:
    """`mugraph check --trace` looks for the program of each kernel among those that the code may have."""
    (region,) = trace.regions
    assert layouts(region)[:2] == (FASTER, WHOLE)
    programs = [unit.program for unit in possible_units(region)]
    assert result.plan is not None
    mine = [found.unit.program for found in result.units if found.solution is not None]
    assert mine
    assert all(program in programs for program in mine)
