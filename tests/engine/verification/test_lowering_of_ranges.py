"""Units of a region with a range are checked at other sizes than the largest, with the views that they read there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from mugraph.ir.ops import Kind
from mugraph.ir.region import Region, SearchUnit
from mugraph.sizes.search_unit import at_other_sizes
from mugraph.trace.tracer import trace_file
from mugraph.units.ranged import ranged_units
from mugraph.units.region_units import cut_region
from mugraph.verification.float_results import LoweringResult
from mugraph.verification.float_test import FloatTester
from mugraph.verification.lowering.check import check_lowering
from mugraph.verification.lowering.run import beside_calls

CODE = """
import torch

# mugraph: b=1..64, x=f16[4, b, 192], y=f16[4, b, 32], w=f16[128, 80]
def parts(x, y, w):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((torch.relu(first) * second, y), dim=-1) @ w

# mugraph: b=1..64, y=f16[b, 80], x=f16[b, 3, 64], w=f16[32, 80]
def seen_otherwise(y, x, w):
    return torch.relu(x.view(-1, 192)[:, 32:64] @ w) * y
"""


@pytest.fixture
def regions(tmp_path: Path) -> dict[str, Region]:
    path = tmp_path / "code.py"
    path.write_text(CODE)
    return {region.function: region for region in trace_file(path).regions}


class Here:
    """The calls are run in this process. asked: sizes of the programs"""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def test_lowering(self, unit: SearchUnit) -> LoweringResult:
        self.asked.append(max(unit.program.sizes[axis] for axis in unit.varying))
        return beside_calls(unit, 0)


def checked(unit: SearchUnit, smaller: tuple[SearchUnit, ...]) -> tuple[Any, list[int]]:
    here = Here()
    return check_lowering(unit, smaller, cast(FloatTester, cast(Any, here))), here.asked


def test_views_of_other_sizes(regions: dict[str, Region]) -> None:
    for function, region in regions.items():
        (unit,), reasons = ranged_units(region)
        assert reasons == ()
        assert isinstance(unit, SearchUnit)
        assert unit.views, function
        smaller = at_other_sizes(unit, region)
        assert [sorted({at.program.sizes[axis] for axis in unit.varying}) for at in smaller] == [[1], [8]]
        for at in smaller:
            assert at.views[0].outputs == unit.views[0].outputs
            for call in at.views:
                assert set(call.outputs) <= at.view_values.keys()
            assert beside_calls(at, 0).passed, function
        found, asked = checked(unit, smaller)
        assert found.passed, found.note
        assert asked == [64, 1, 8]


def test_the_same_of_a_cut_whose_views_the_region_knows(regions: dict[str, Region]) -> None:
    for whole in regions.values():
        region, parts = cut_region(whole)
        units = [part for part in parts if isinstance(part, SearchUnit)]
        assert units
        for unit in units:
            found, asked = checked(unit, at_other_sizes(unit, region))
            assert found.passed, found.note
            assert len(asked) == 3


def test_what_views_make_has_its_size(regions: dict[str, Region]) -> None:
    """Of a batch: its size is a dimension of every part that is read."""
    for region in regions.values():
        (unit,), _ = ranged_units(region)
        assert isinstance(unit, SearchUnit)
        for at, size in zip(at_other_sizes(unit, region), (1, 8), strict=True):
            for value, info in unit.view_values.items():
                if 64 in info.shape:
                    assert at.view_values[value].shape == tuple(size if n == 64 else n for n in info.shape)
                else:
                    assert at.view_values[value] == info
        assert any(64 in info.shape for info in unit.view_values.values())


@pytest.mark.parametrize("function", ["parts", "seen_otherwise"])
def test_a_program_that_is_wrong_at_another_size_alone(function: str, regions: dict[str, Region]) -> None:
    (unit,), _ = ranged_units(regions[function])
    assert isinstance(unit, SearchUnit)
    least, middle = at_other_sizes(unit, regions[function])
    ops = tuple(replace(op, kind=Kind.EXP, fn="") if op.fn == "relu" else op for op in middle.program.ops)
    assert ops != middle.program.ops
    wrong = replace(middle, program=replace(middle.program, ops=ops))
    found, asked = checked(unit, (least, wrong))
    assert found.passed is False
    assert asked == [64, 1, 8]
    assert "=8" in found.note


LARGE = """
import torch
import torch.nn.functional as F

# mugraph: t=1..4096, q=f16[1, 16, t, 128], k=f16[1, 16, t, 128], v=f16[1, 16, t, 128]
def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)

# mugraph: s=1..6144, r=1..3072, x=f32[8, r, 64], y=f32[8, s, 64], z=f32[8, s, 48]
def mixed(x, y, z):
    weights = torch.softmax(torch.tanh(x @ y.mT) * 3.0, dim=-1)
    return torch.relu(weights @ z) - 0.5
"""


@pytest.fixture(params=["causal", "mixed"])
def large(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[SearchUnit, Region]:
    path = tmp_path / "large.py"
    path.write_text(LARGE)
    region = next(one for one in trace_file(path).regions if one.function == request.param)
    (unit,) = [part for part in ranged_units(region)[0] if isinstance(part, SearchUnit)]
    return unit, region


def test_what_is_too_much_at_the_largest_size_is_compared_in_float64_at_a_smaller_one(
    large: tuple[SearchUnit, Region],
) -> None:
    unit, _ = large
    found = beside_calls(unit, 0)
    assert found.passed, found.reason
    assert found.wide == "float64"
    assert found.share == 1.0
    assert found.error < 1e-9
    for axis in unit.varying:
        assert 64 < found.sizes[axis] < unit.program.sizes[axis]


def test_another_program_does_not_pass_there(large: tuple[SearchUnit, Region]) -> None:
    """Calls for the smaller size may have been made in the wrong way: it is at the largest, if that can be, and at
    others of the range, that it is said."""
    unit, region = large
    ops = unit.program.ops
    weight = next(op for op in ops if op.kind is Kind.CONST)
    wrongs = [replace(weight, value=weight.value * 1.001)]
    wrongs += [replace(op, kind=Kind.EXP, fn="") for op in ops if op.fn == "relu"]
    for wrong in wrongs:
        program = replace(unit.program, ops=tuple(wrong if op.name == wrong.name else op for op in ops))
        other = replace(unit, program=program)
        found, _ = checked(other, at_other_sizes(other, region))
        assert found.passed is False
