"""A region whose size has a range, from the search to what is offered, on a device that is stood in for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from mugraph.commands.bench import floor_us, workload
from mugraph.edit.module.file import module_text
from mugraph.events import RegionResult, Working
from mugraph.ir.names import Scope
from mugraph.ir.region import Region
from mugraph.options import Options
from mugraph.plans.plan import KernelStep
from mugraph.reports.document import region_document
from mugraph.reports.text import times_text
from mugraph.sizes.timing import gain_words
from mugraph.solve.job import RegionJob
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import Device
from mugraph.tune.measure import Compared
from mugraph.tune.messages import Agreed, Hello
from mugraph.tune.statistics import Summary
from mugraph.verification.float_results import FloatResult, LoweringResult

TARGET = TARGETS["h100"]
GAIN = "2.40x on the device, 2.12x as called, 2.00x torch.compile (1.76x as called)"
HERE = Device("a GPU", "gpu", TARGET, TARGET.capability, "1")
TEXT = """\
import torch


# mugraph: b=1..64, x=f16[b, 64], w=f16[64, 48]
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w)


# mugraph: b=1..64, rows=f16[b, 64], matrix=f16[64, 48]
def the_same(rows: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    return torch.relu(rows @ matrix)


# mugraph: b=1..64, x=f16[b, 64], w=f16[64, 48], v=f16[48, 32]
def two_kernels(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    summed = torch.cumprod(torch.relu(x @ w), dim=-1)
    return torch.relu(summed @ v)
"""


@dataclass
class Measuring:
    """Stands for the measuring process. A kernel alone takes the longer the more stages it has; the region's takes 5 µs
    up to `faster_to` rows, then 20, and PyTorch 10. wrong_at: rows at which it gives another result.

    slow_at: rows from which a kernel alone takes 30
    loops_at: rows from which kernels with a loop are the faster ones, below them those without
    compared: rows at which the region was measured, and what against
    """

    faster_to: int = 64
    wrong_at: int = 0
    slow_at: int = 1 << 30
    loops_at: int = 0
    compared: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    def begin(self) -> None: ...

    def hello(self) -> Hello:
        return Hello("a GPU", {}, 1 << 20)

    def at_once(self, output_bytes: int) -> int:
        return 1

    def measure_kernels(self, subjects: Sequence[tuple[Any, Any]], rounds: int, **_: object) -> Iterator[Summary]:
        return (self.measure_kernel(subject, inputs, rounds) for subject, inputs in subjects)

    def measure_kernel(self, subject: Any, inputs: Any, rounds: int) -> Summary:
        if subject.name == "plain":
            return Summary(10.0, 0.01, rounds)
        if inputs[0].shape[0] >= self.slow_at:
            return Summary(30.0, 0.01, rounds)
        favoured = ("for " in subject.source) == (inputs[0].shape[0] >= self.loops_at)
        return Summary((2.0 if favoured else 9.0) + 0.1 * subject.source.count("num_stages=4"), 0.01, rounds)

    def agree(self, ours: Any, reference: Any, inputs: Sequence[Any]) -> Agreed:
        right = inputs[0].shape[0] != self.wrong_at
        return Agreed(right, 0.0 if right else 1.0, 1e-3)

    def compare(self, subjects: Sequence[Any], inputs: Sequence[Any], **_: object) -> dict[str, Summary]:
        names = [subject.name for subject in subjects]
        if "eager" not in names:
            return {subject.name: self.measure_kernel(subject, inputs, 9) for subject in subjects}
        self.compared[inputs[0].shape[0]] = names
        ours = 5.0 if inputs[0].shape[0] <= self.faster_to else 20.0
        times = {"eager": 12.0, "torch.compile": 10.0, "max-autotune": 11.0, "mugraph": ours}
        return {name: Summary(times[name], 0.01, 9) for name in names}

    def compare_called(
        self, subjects: Sequence[Any], inputs: Sequence[Any], ours: str, applied: object, **_: object
    ) -> Compared:
        """A call takes three times as long as its kernels, and 2 µs more with a guard."""
        device = self.compare(subjects, inputs)
        called = {name: Summary(3 * one.median_us + 2 * (name == ours), 0.01, 9) for name, one in device.items()}
        return Compared(dict(device), dict(called), None if applied is not None else "it has no edit")


class Right:
    """Stands for the float test's process: all is right."""

    def begin(self) -> None: ...

    def until(self, _: float) -> AbstractContextManager[None]:
        return nullcontext()

    def test_lowering(self, *_: object) -> LoweringResult:
        return LoweringResult(True)

    def test_kernel(self, *_: object) -> FloatResult:
        return FloatResult(True, None, 1e-3, 1e-3, "a GPU")


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Region, ...]:
    path = tmp_path_factory.mktemp("sizes") / "model.py"
    path.write_text(TEXT)
    return trace_file(path).regions


@pytest.fixture
def region(regions: tuple[Region, ...]) -> Region:
    return regions[0]


def solved(region: Region, device: Measuring, store: Store | None = None) -> tuple[RegionResult, list[str]]:
    """And what was said on the way."""
    tools = Tools(TARGET, cast(Any, Right()), compiled=True, measurer=cast(Any, device))
    options = Options(budget_s=0.5, max_kernels=1)
    job = RegionJob(0, region, Scope(()), HERE, tools, options, store, lambda: False, Path("model.py"))
    steps, said = job.result(), list[str]()
    while True:
        try:
            event = next(steps)
        except StopIteration as end:
            return end.value, said
        said += [event.what] if isinstance(event, Working) else []


def test_it_is_offered_for_the_sizes_at_which_it_is_faster(region: Region, tmp_path: Path) -> None:
    device = Measuring(faster_to=16)
    with Store.open(tmp_path / "store") as store:
        result, said = solved(region, device, store)
        again, _ = solved(region, Measuring(), store)
    assert result.status == "improved"
    assert sorted(device.compared) == [1, 8, 16, 32, 64]
    assert all(names == ["eager", "torch.compile", "max-autotune", "mugraph"] for names in device.compared.values())
    assert "measuring product at b = 16 against eager, torch.compile and max-autotune" in said
    assert [row.gains for row in result.timing.sizes] == [True, True, True, False, False]
    assert (result.timing.at, result.timing.speedup) == (16, 2.4)
    assert result.plan is not None
    assert result.plan.faster_for == ((1, 16),)
    assert gain_words(region, result.timing) == f"{GAIN} for b up to 16"
    lines = times_text(result)
    assert lines[0] == (
        "b = 1: 12.0 µs -> 5.0 µs, 2.40x, as called 36.0 µs -> 17.0 µs without the guards of its objects"
        " (eager 12.0, torch.compile 10.0, max-autotune 11.0)"
    )
    assert "; the original code runs" in lines[-2]
    document = json.loads(json.dumps(region_document(result)))
    assert document["dynamic"]["faster_for"] == [[1, 16]]
    assert document["timing"]["size"] == 16
    assert [row["speedup"] for row in document["timing"]["sizes"]] == [2.4, 2.4, 2.4, 0.6, 0.6]
    assert [row["best_speedup"] for row in document["timing"]["sizes"]] == [2.0, 2.0, 2.0, 0.5, 0.5]
    assert document["timing"]["as_called"]["speedup"] == pytest.approx(36 / 17)
    (proved,) = document["verification"]["ranges"]
    (axis,) = proved["proved"]["sizes"]
    assert proved["proved"]["by"] == "z3"
    assert proved["proved"]["sizes"][axis] == [1, 64]
    assert proved["proved"]["claims"] > 5
    assert proved["tested"]["sizes"][axis] == [1, 33, 64]
    text = module_text([result.plan], result.sources, original_path=Path("model.py"), target=TARGET)
    assert "or b <= 16)" in text
    assert f"for all of {axis} = 1..64 it is proved of the text (z3, " in text.replace("\n#             ", " ")
    assert "runs for b up to 16" in text
    # What a device has chosen at each size is kept, and so is what was measured there.
    assert again.sources == result.sources
    assert again.timing == result.timing


@pytest.mark.parametrize(("loops_at", "loops"), [(1, True), (64, False)])
def test_the_kernel_is_the_one_that_is_best_over_all_sizes(region: Region, loops_at: int, loops: bool) -> None:
    """With 64 the fastest at the largest size is the slowest at the two others."""
    result, _ = solved(region, Measuring(loops_at=loops_at))
    assert result.plan is not None
    (source,) = result.sources.values()
    assert ("for " in source.jit) == loops


def test_where_all_sizes_gain_nothing_is_left_out(region: Region) -> None:
    result, _ = solved(region, Measuring())
    assert result.status == "improved"
    assert result.plan is not None
    assert result.plan.faster_for is None
    assert gain_words(region, result.timing) == f"{GAIN} for b = 1..64"


def test_a_kernel_that_is_never_faster_is_not_offered(region: Region) -> None:
    result, _ = solved(region, Measuring(faster_to=0))
    assert result.status == "no-gain"
    assert [one.partition(":")[0] for one in str(result.reason).split("; ")] == ["at b = 1", "at b = 8", "at b = 64"]


def test_a_kernel_that_is_wrong_at_one_size_is_not_offered_at_any(region: Region) -> None:
    result, _ = solved(region, Measuring(wrong_at=8))
    assert result.status == "no-gain"
    assert str(result.reason).startswith("with b = 8: differs from the original")


def test_what_a_device_has_chosen_is_kept(regions: tuple[Region, ...], tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        (first,), (second,) = (solved(region, Measuring(), store)[0].units for region in regions[:2])
    assert first.solution is not None
    assert second.solution is not None
    assert (first.from_store, second.from_store) == (False, True)
    assert first.unit.program.sizes.keys() == second.unit.program.sizes.keys()
    rows, others = first.solution.source.launches, second.solution.source.launches
    assert [row.largest for row in rows] == sorted({row.largest for row in rows})
    assert rows == others
    assert [row.schedule for row in rows] == [row.schedule for row in others]


@pytest.mark.parametrize(("slow_at", "kernels"), [(64, 2), (1, 0)])
def test_of_several_kernels_one_stays_that_pays_at_a_smaller_size(
    regions: tuple[Region, ...], slow_at: int, kernels: int
) -> None:
    """PyTorch takes 10 µs for what each of them computes."""
    result, _ = solved(regions[2], Measuring(faster_to=16, slow_at=slow_at))
    solutions = [unit.solution for unit in result.units if unit.solution is not None]
    assert [solution.measured_us for solution in solutions] == [30.0, 30.0]
    assert [solution.pays for solution in solutions] == [bool(kernels)] * 2
    used = [step for step in result.plan.steps if isinstance(step, KernelStep)] if result.plan is not None else []
    assert result.status == ("improved" if kernels else "no-gain")
    assert len(used) == kernels or not kernels


def test_a_benchmark_names_the_size_of_its_figures(region: Region) -> None:
    few, _ = solved(region, Measuring(faster_to=16))
    every, _ = solved(region, Measuring())
    one, other = (workload("model", result, TARGET, 1.0) for result in (few, every))
    assert (one["name"], other["name"]) == ("model:product at b = 16", "model:product at b = 64")
    assert one["speedup"] == 2.0
    assert one["code_speedup"] == 2.4
    assert one["as_called"] is not None
    assert floor_us(few, TARGET) < floor_us(every, TARGET)
