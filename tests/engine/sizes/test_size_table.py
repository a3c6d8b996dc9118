"""Schedules by size: one text of the kernel, launched with what suits each size, by estimate or by measuring."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Candidate
from mugraph.ir.kernel import Rejected
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.ir.tensors import Tensor
from mugraph.search.run import Search
from mugraph.search.schedules.cost import estimate_library_us, estimate_us
from mugraph.search.schedules.sizes import schedules
from mugraph.search.schedules.split_schedules import split_candidates
from mugraph.search.topologies.limits import Limits
from mugraph.sizes import table as tables
from mugraph.sizes import tuning
from mugraph.sizes.search_unit import estimates_at
from mugraph.sizes.table import SizeTable, at_step, sizes_at, steps_of
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import Variant
from mugraph.units.search_units import single_units
from mugraph.verification.float_results import FloatResult

TARGET = TARGETS["h100"]
TEXT = """\
import torch


# mugraph: x=f16[256, 2048], w=f16[2048, 4096]
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> TensorProgram:
    """Its rows are any number up to 256."""
    path = tmp_path_factory.mktemp("sizes") / "model.py"
    path.write_text(TEXT)
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    (rows,) = [axis for axis, size in unit.program.sizes.items() if size == 256]
    return replace(unit.program, least={rows: 1})


@pytest.fixture(scope="module")
def best(program: TensorProgram) -> Candidate:
    block = next(f.block for f in Search(program, Limits(seconds=5)).run() if f.block.loop_axes)
    return schedules(block, TARGET)[0]


@pytest.fixture(scope="module")
def table(program: TensorProgram) -> SizeTable:
    return SizeTable(program, TARGET, [tensor.name for tensor in program.outputs.values()])


def test_steps(program: TensorProgram, table: SizeTable) -> None:
    (rows,) = program.least
    assert steps_of(program) == (1, 256)
    assert table.steps[0] == 1
    assert table.steps[-1] == 256
    assert sizes_at(program, 7) == {**program.sizes, rows: 7}
    assert tables.tested_steps(program) == (1, 129, 256)
    assert steps_of(replace(program, least={})) == (1, 1)


def test_the_table_has_one_text_and_the_largest_size_last(table: SizeTable, best: Candidate) -> None:
    kernels = [(best.block, best.schedule)]
    source = table.source(kernels)
    assert source.jit == table.lowered(kernels).jit
    limits = [launch.largest for launch in source.launches]
    assert limits == sorted(set(limits))
    assert limits[-1] == 256
    assert len(limits) > 1
    assert all(launch.constexprs.keys() == source.constexprs.keys() for launch in source.launches)
    # What the estimate has chosen for few rows has no tile of many.
    tiles = {name for name in source.constexprs if name == f"BLOCK_{next(iter(source.least)).upper()}"}
    assert all(source.launches[0].constexprs[name] <= source.launches[-1].constexprs[name] for name in tiles)
    said = [int(found) for found in re.findall(r"if \w+ <= (\d+):", source.launcher)]
    assert said == limits[:-1]


def test_parts_of_one_size_of_an_axis_that_varies_are_no_kernel(program: TensorProgram, best: Candidate) -> None:
    (depth,) = [axis for axis, size in program.sizes.items() if size == 2048]
    varies = replace(program, least={depth: 16})
    split = split_candidates([best.block], TARGET)
    assert split
    with pytest.raises(Rejected, match="cut into parts"):
        lower_kernels([(k.block, k.schedule) for k in split[0].kernels], target=TARGET, program=varies)
    looped = lower_kernels([(best.block, best.schedule)], target=TARGET, program=varies)
    assert list(looped.arguments.values()) == [depth]
    assert f"range(0, {next(iter(looped.arguments))}, " in looped.jit


def test_gaps_around_an_axis_that_varies_are_refused(program: TensorProgram, best: Candidate) -> None:
    """A stride that is a number would be that of the largest size."""
    (rows,) = program.least

    def wider(tensor: Tensor) -> Tensor:
        """Columns first, with a gap after the rows of each."""
        if rows not in tensor.axes or tensor.name not in {t.name for t in program.tensors}:
            return tensor
        return replace(tensor, strides=(1, 300))

    block = replace(best.block, tensors=tuple(wider(tensor) for tensor in best.block.tensors))
    with pytest.raises(Rejected, match="gaps around axis"):
        lower_kernels([(block, best.schedule)], target=TARGET, program=program)


@dataclass
class Device:
    """Stands for the measuring process: the more stages, the faster. asked: inputs of each measurement"""

    asked: list[Any] = field(default_factory=list)

    def at_once(self, output_bytes: int) -> int:
        return 1

    def measure_kernels(self, subjects: Sequence[tuple[Any, Any]], rounds: int, **_: object) -> Iterator[Summary]:
        return (self._measured(subject, inputs, rounds) for subject, inputs in subjects)

    def _measured(self, subject: Any, inputs: Any, rounds: int) -> Summary:
        self.asked.append(inputs)
        stages = [int(found) for found in re.findall(r"num_stages=(\d)", subject.source)]
        return Summary(10.0 - stages[-1], 0.01, rounds)

    def compare(self, subjects: Sequence[Any], inputs: Any) -> dict[str, Summary]:
        return {subject.name: self._measured(subject, inputs, 9) for subject in subjects}


@dataclass
class Judge:
    """wrong_at: number of rows at which every kernel is wrong."""

    wrong_at: int = 0
    sizes: list[int] = field(default_factory=list)

    def test_kernel(self, kernel: Any, program: TensorProgram) -> FloatResult:
        size = next(program.sizes[axis] for axis in kernel.least)
        self.sizes.append(size)
        return FloatResult(size != self.wrong_at, "wrong" if size == self.wrong_at else None, 1e-3, 1e-3, "a GPU")


def test_a_device_decides_at_each_size(table: SizeTable, best: Candidate) -> None:
    variant = Variant(best, table.lowered([(best.block, best.schedule)]))
    device, tester = Device(), Judge()
    largest = FloatResult(True, None, 1e-3, 1e-3, "a GPU")
    source, tested = tuning.tuned_sizes(table, variant, largest, cast(Any, device), cast(Any, tester), None)
    assert tested.passed
    assert source.jit == variant.kernel.jit
    assert source.launches[-1].largest == 256
    measured = {spec[0].shape[0] for spec in device.asked}
    assert measured == set(table.steps[:-1])
    assert {1, 129, 256} <= set(tester.sizes)


def test_a_kernel_wrong_at_one_size_is_not_offered(table: SizeTable, best: Candidate, program: TensorProgram) -> None:
    kernel = table.lowered([(best.block, best.schedule)])
    tested = tuning.tested_at_sizes(cast(Any, Judge(wrong_at=129)), kernel, program)
    assert not tested.passed
    assert tested.reason is not None
    assert "= 129: wrong" in tested.reason


def test_the_program_at_a_step_is_an_ordinary_one(program: TensorProgram, best: Candidate) -> None:
    (rows,) = program.least
    small, kernels = at_step(program, [(best.block, best.schedule)], 7)
    assert not small.least
    assert small.sizes[rows] == kernels[0][0].sizes[rows] == 7
    assert kernels[0][1] is best.schedule


def test_each_size_is_estimated_with_its_own_schedule(
    table: SizeTable, best: Candidate, program: TensorProgram
) -> None:
    kernels = [(best.block, best.schedule)]
    source = table.source(kernels)
    found: list[float] = []
    for launch in source.launches:
        small, _ = at_step(program, [], launch.largest)
        ours_us, library_us = estimates_at(small, kernels, source, TARGET)
        block = at_step(program, kernels, launch.largest)[1][0][0]
        assert ours_us == estimate_us(block, launch.schedule, TARGET)
        assert library_us == estimate_library_us(small, TARGET)
        found.append(ours_us)
    assert found == sorted(found)


def test_given_schedules_make_the_same_launcher(table: SizeTable, best: Candidate) -> None:
    kernels = [(best.block, best.schedule)]
    source = table.source(kernels)
    rows = [[(launch.largest, launch.schedule) for launch in source.launches]]
    assert table.with_schedules(kernels, rows).launcher == source.launcher
    (axis, _), *others = best.schedule.grid
    other = replace(best.schedule, grid=((axis, 1), *others), swap=not best.schedule.swap)
    with pytest.raises(Rejected):
        table.with_schedules(kernels, [[(256, other)]])
