"""Products that PyTorch has in no float64: their programs beside its own calls, in float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.region import Call, SearchUnit
from mugraph.verification.lowering.calls import widest
from mugraph.verification.lowering.run import beside_calls
from torch.nn.functional import ScalingType

from tests.engine.ops.harness import NOWHERE
from tests.engine.verification.lowering_mutants import mutants
from tests.engine.verification.recorded_units import unit_from

E4M3, E5M2, BF16 = torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16
A, W, BIAS = torch.randn(24, 32).to(E4M3), torch.randn(48, 32).to(E5M2), torch.randn(48).to(BF16)
ONE = {"a": A, "w": W, "sa": torch.rand(()), "sb": torch.rand(1), "bias": BIAS}
OF_ROWS = {"a": A, "w": W, "sa": torch.rand(24, 1), "sb": torch.rand(1, 48), "bias": BIAS}


def called(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
    return F.silu(torch._scaled_mm(a, w.t(), sa, sb, bias, out_dtype=BF16))


def by_recipe(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
    rows = ScalingType.RowWise
    return torch.relu(F.scaled_mm(a, w.t(), sa, rows, sb, rows, bias=bias, output_dtype=BF16))


def quantised(x: Any) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True) / 448.0
    return (x / scale).to(E4M3).float() * scale


def in_whole_numbers(x: Any) -> torch.Tensor:
    return (x * 60.0).round().clamp(-128, 127).to(torch.int8)


UNITS: dict[str, Callable[[], SearchUnit]] = {
    "tensors": lambda: unit_from(called, **ONE),
    "rows": lambda: unit_from(called, **OF_ROWS),
    "recipe": lambda: unit_from(by_recipe, **OF_ROWS),
    "groups": lambda: unit_from(
        lambda x, w: F.silu(F.grouped_mm(x, w)), x=torch.randn(3, 8, 16).to(BF16), w=torch.randn(3, 16, 24).to(BF16)
    ),
}


@pytest.mark.parametrize("name", UNITS)
def test_a_right_program_is_accepted_and_wrong_ones_are_not(name: str) -> None:
    unit = UNITS[name]()
    found = beside_calls(unit, 0)
    assert found.passed, found.reason
    assert found.wide == "float32"
    wrong = list(mutants(unit.program))
    assert wrong
    for what, program in wrong:
        assert beside_calls(replace(unit, program=program), 0).passed is False, what


@pytest.mark.parametrize("function", [quantised, in_whole_numbers])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_conversions_to_eight_bits_are_made_in_them(function: Callable[..., Any], dtype: torch.dtype) -> None:
    unit = unit_from(function, x=torch.randn(24, 96).to(dtype))
    found = beside_calls(unit, 0)
    assert found.passed, found.reason
    assert found.wide == "float64"
    # A scale of another sign is multiplied with at the end as well.
    wrong = [(what, program) for what, program in mutants(unit.program) if "another sign" not in what]
    assert wrong
    for what, program in wrong:
        assert beside_calls(replace(unit, program=program), 0).passed is False, what


def test_other_calls_are_made_in_float64() -> None:
    assert widest([Call("torch.mm", (), {}, (), NOWHERE)]) == "float64"
    assert widest([Call("torch.mm", (), {}, (), NOWHERE), Call("torch._grouped_mm", (), {}, (), NOWHERE)]) == "float32"
