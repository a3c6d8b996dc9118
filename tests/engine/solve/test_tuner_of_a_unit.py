"""Each tuner on the way of a search unit, on a device that is stood in for: what it measures is written, verified and
offered, and there are no more trials than asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import pytest
from mugraph.events import UnitResult
from mugraph.ir.region import SearchUnit
from mugraph.options import Bounds
from mugraph.protocol.settings import EngineSettings, TunerName
from mugraph.solve.search_unit import solve
from mugraph.solve.telling import Place
from mugraph.solve.tools import Tools
from mugraph.trace.tracer import trace_file
from mugraph.tune.messages import Subject
from mugraph.tune.statistics import Summary
from mugraph.units.search_units import single_units
from mugraph.verification.float_results import FloatResult

from tests.engine.solve.machine import TARGET, Machine

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[16, 512], w=f16[512, 1024]
def gate(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.silu(x @ w)
"""
TRIALS = 20
NAMES = [cast(TunerName, name) for name in get_args(TunerName)]


@dataclass
class Timed(Machine):
    """A kernel is the faster the fewer warps it has; alike otherwise."""

    timed: list[str] = field(default_factory=list[str])

    def at_once(self, output_bytes: int) -> int:
        return 1

    def measure_kernels(
        self, kernels: Sequence[tuple[Subject, object]], rounds: int = 9, **_: object
    ) -> Iterator[Summary]:
        for subject, _ in kernels:
            self.timed.append(subject.source)
            yield Summary(_us(subject.source), 0.01, rounds)

    def compare(self, subjects: Sequence[Subject], inputs: object, **_: object) -> dict[str, Summary]:
        return {one.name: Summary(_us(one.source), 0.01, 9) for one in subjects}


def _us(source: str) -> float:
    return 2.0 + sum(map(int, re.findall(r"num_warps=(\d+)", source)))


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> SearchUnit:
    path = tmp_path_factory.mktemp("tuners") / "model.py"
    path.write_text(TEXT)
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    return unit


def solved(unit: SearchUnit, machine: Timed, tuner: TunerName) -> UnitResult:
    it = cast(Any, machine)
    tools = Tools(TARGET, it, compiled=True, measurer=it, pool=it, peers=it)
    steps = solve(unit, Place(0, 0, 1, "gate", "gate"), tools, Bounds(2.0, 1, tuner=tuner, trials=TRIALS))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("tuner", NAMES)
def test_finds_a_kernel_that_is_right(unit: SearchUnit, tuner: TunerName) -> None:
    machine = Timed()
    result = solved(unit, machine, tuner)
    assert result.solution is not None
    assert result.solution.verdict.passed
    assert 0 < len(machine.timed) <= TRIALS
    assert len(set(machine.timed)) == len(machine.timed)
    fewest = min(map(_us, machine.timed))
    assert result.solution.measured_us == fewest


def test_another_tuner_is_another_search() -> None:
    """What was found with one is not the answer for another; for the default, what was kept before stays."""
    assert str(Bounds()) == (
        f"{EngineSettings.budget_s:g} s, {EngineSettings.max_kernels} kernels, {EngineSettings.max_ops} operators"
    )
    assert len({str(Bounds(tuner=tuner)) for tuner in NAMES}) == len(NAMES)
    assert str(Bounds(trials=41)) != str(Bounds())


@dataclass
class Slow(Timed):
    """Every kernel takes 60 times as long as PyTorch's calls, and none may be tested."""

    def measure_kernel(self, subject: Subject, inputs: object, rounds: int = 9) -> Summary:
        return Summary(0.1, 0.01, rounds)

    def test_kernel(self, *_: object) -> FloatResult:
        raise AssertionError("a kernel that nobody will use was tested")


def test_what_is_far_slower_than_pytorch_is_measured_and_not_tested(unit: SearchUnit) -> None:
    result = solved(unit, Slow(), "walk")
    solution = result.solution
    assert solution is not None
    assert not solution.tested
    assert not solution.pays
    assert (solution.measured_us, solution.plain_us) == (6.0, 0.1)
    assert result.reason == "on the device the kernel is slower than the code as it runs, 6.0 µs against 0.1"
