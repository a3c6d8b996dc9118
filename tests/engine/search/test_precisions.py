"""Products of float32: how they are computed is a choice of the schedule, and of no product of 16-bit numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.block import PRECISIONS, TF32, BlockGraph, Precision, Schedule
from mugraph.ir.json import schedule_from_json, schedule_to_json
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.neighbours import neighbours
from mugraph.search.schedules.sizes import ScheduleLimits, schedules
from mugraph.search.topologies.limits import Limits
from mugraph.sizes.text import text_checked
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.units.search_units import single_units
from mugraph.verification.float_test import FloatTester

TARGET = TARGETS["h200"]
EXACT = [precision for precision in PRECISIONS if precision != TF32]
TEXT = """\
import torch


# mugraph: rows={dtype}[192, 160], weight={dtype}[96, 160]
def projected(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return rows @ weight.T
"""


def found(folder: Path, dtype: str) -> tuple[TensorProgram, BlockGraph]:
    path = folder / "model.py"
    path.write_text(TEXT.format(dtype=dtype))
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    block = next(one.block for one in Search(unit.program, Limits(seconds=5)).run() if one.block.loop_axes)
    return unit.program, block


def test_it_is_a_choice_where_numbers_are_float32(tmp_path: Path) -> None:
    every = ScheduleLimits(max_candidates=10_000)
    _, exact = found(tmp_path, "f32")
    assert {one.schedule.precision for one in schedules(exact, TARGET, every)} == set(EXACT)
    _, half = found(tmp_path, "f16")
    assert {one.schedule.precision for one in schedules(half, TARGET, every)} == {"ieee"}


def test_a_step_of_the_walk_changes_it(tmp_path: Path) -> None:
    _, block = found(tmp_path, "f32")
    start = schedules(block, TARGET)[0]
    assert {one.schedule.precision for one in neighbours(start, TARGET)} == set(EXACT)


@pytest.mark.parametrize("precision", EXACT)
def test_its_kernel_is_right_and_says_it(tmp_path: Path, precision: Precision) -> None:
    program, block = found(tmp_path, "f32")
    schedule = next(
        one.schedule
        for one in schedules(block, TARGET, ScheduleLimits(max_candidates=10_000))
        if one.schedule.precision == precision
    )
    source = lower(block, schedule, target=TARGET)
    assert f'input_precision="{precision}"' in source.jit
    with FloatTester(timeout_s=120) as tester:
        result = tester.test_kernel(source, program)
    assert result.passed, result.reason
    text = text_checked(program, source, [(block, schedule)])
    assert text.passed, text.reason


@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_is_kept(tmp_path: Path, precision: Precision) -> None:
    _, block = found(tmp_path, "f32")
    schedule = Schedule((("i0", 64), ("i1", 32)), dict.fromkeys(block.loop_axes, 32), True, 4, 2, precision=precision)
    assert schedule_from_json(schedule_to_json(schedule)) == schedule
