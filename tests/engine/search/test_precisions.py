"""Products of float32: how they are computed is a choice of the schedule, and of no product of 16-bit numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.block import PRECISIONS, TF32, BlockGraph, Precision, Schedule
from mugraph.ir.json import schedule_from_json, schedule_to_json
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.neighbours import neighbours
from mugraph.search.schedules.sizes import ScheduleLimits, schedules
from mugraph.search.schedules.tiles import Shape
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
    return of_text(folder, TEXT.format(dtype=dtype))


def of_text(folder: Path, text: str) -> tuple[TensorProgram, BlockGraph]:
    path = folder / "model.py"
    path.write_text(text)
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


ACROSS = """\
import torch


# mugraph: rows=f32[512, 256], weight=f32[{weight}]
def projected(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return rows @ {as_used}
"""


def of_layout(folder: Path, *, along: bool) -> tuple[TensorProgram, BlockGraph]:
    """along: the weight lies in memory along the depth"""
    weight, as_used = ("384, 256", "weight.T") if along else ("256, 384", "weight")
    return of_text(folder, ACROSS.format(weight=weight, as_used=as_used))


def test_large_tiles_change_places_where_the_right_operand_lies_across(tmp_path: Path) -> None:
    """The cores take parts of tf32 along the depth alone."""
    every = ScheduleLimits(max_candidates=10_000)

    def tiles(*, along: bool) -> set[tuple[tuple[str, int], ...]]:
        _, block = of_layout(tmp_path, along=along)
        return {one.schedule.grid for one in schedules(block, TARGET, every) if one.schedule.swap}

    def rows_of(grids: set[tuple[tuple[str, int], ...]]) -> int:
        return max(min(tile for _, tile in grid) for grid in grids if len(grid) == 2)

    assert rows_of(tiles(along=False)) >= 128
    assert rows_of(tiles(along=True)) <= 32, "there is nothing to gain"


def test_the_best_tile_cuts_operands_least(tmp_path: Path) -> None:
    """Measured: 1,455 us in tiles of 128 x 128, 1,651 in 128 x 64, 1,958 in 32 x 128."""
    _, block = of_layout(tmp_path, along=True)
    block = replace(block, sizes=dict.fromkeys(block.sizes, 4096))
    shape = Shape(block)
    (m, n), (k,) = shape.grid_axes, block.loop_axes

    def us(columns: int, depth: int, warps: int, stages: int) -> float:
        tiling = Schedule(((m, 128), (n, columns)), {k: depth}, False, warps, stages, precision="tf32x3")
        return estimate_us(block, tiling, TARGET)

    square, half, flat = us(128, 64, 8, 3), us(64, 32, 4, 4), us(32, 32, 4, 4)
    assert 1.08 < half / square < 1.2
    assert 1.3 < flat / square < 1.6


def test_a_large_transposed_product_is_right(tmp_path: Path) -> None:
    program, block = of_layout(tmp_path, along=False)
    schedule = next(
        one.schedule
        for one in schedules(block, TARGET, ScheduleLimits(max_candidates=10_000))
        if one.schedule.swap
        and one.schedule.precision == "tf32x3"
        and min(tile for _, tile in one.schedule.grid) >= 128
    )
    source = lower(block, schedule, target=TARGET)
    with FloatTester(timeout_s=120) as tester:
        result = tester.test_kernel(source, program)
    assert result.passed, result.reason
    text = text_checked(program, source, [(block, schedule)])
    assert text.passed, text.reason
