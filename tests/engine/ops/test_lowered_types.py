"""Precision: types of results, what is computed in float32, and epsilons by type."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind

from tests.engine.ops.harness import check, lower_region, randn, record

X = randn(4, 6)


def test_precision_marks() -> None:
    def norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        v = x.float()
        v = v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + 1e-5)
        return v.to(x.dtype) @ w

    program = lower_region(record(norm, {"x": X.half(), "w": randn(6, 5).half()})).program
    marks = {op.kind: op.f32 for op in program.compute_ops}
    assert marks[Kind.SUM]
    assert marks[Kind.DIV]
    assert not marks[Kind.DOT]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_epsilon_that_rms_norm_takes_by_itself(dtype: torch.dtype) -> None:
    """As PyTorch computes it: small equal numbers x give x / sqrt(x² + eps)."""
    x = torch.full((2, 8), 1e-3, dtype=dtype)
    program = lower_region(record(lambda x: F.rms_norm(x, (8,)), {"x": x})).program
    (added,) = [op.value for op in program.ops if op.kind is Kind.CONST and op.value != 1 / 8]
    small, normalized = x.double()[0, 0], F.rms_norm(x, (8,)).double()[0, 0]
    assert added == pytest.approx(float(small**2 / normalized**2 - small**2), rel=0.05)


@pytest.mark.parametrize("eps", [1e-12, 1e-3, 2.0])
def test_normalize_below_and_above_its_epsilon(eps: float) -> None:
    """Zero rows stay zero, short rows are divided by eps, long ones by their length."""
    x = randn(6, 5) * torch.tensor([0.0, 1e-9, 1e-4, 1e-2, 1.0, 100.0])[:, None]
    check(lambda x: F.normalize(x, dim=-1, eps=eps) * 1e3, {"x": x})


def test_normalize_in_half_precision_has_no_epsilon() -> None:
    """1e-12 is zero there, and a row of zeros gives NaN, as PyTorch gives."""
    zeros = torch.zeros(2, 4, dtype=torch.float16)
    assert F.normalize(zeros, dim=-1).isnan().all()
    program = lower_region(record(lambda x: F.normalize(x, dim=-1), {"x": zeros})).program
    assert [op.kind for op in program.compute_ops] == [Kind.MUL, Kind.SUM, Kind.SQRT, Kind.DIV]
    wider = lower_region(record(lambda x: F.normalize(x, dim=-1), {"x": zeros.bfloat16()})).program
    assert any(op.kind is Kind.MAX for op in wider.ops)


PROMOTIONS: dict[str, tuple[Callable[..., torch.Tensor], str, str]] = {
    "a number": (lambda x, y: (x * 2.5 + 1) @ y.to(x.dtype), "f16", "f32"),
    "float32 by bfloat16": (lambda x, y: x * y, "f32", "bf16"),
    "bfloat16 by float16": (lambda x, y: x + y, "bf16", "f16"),
    "half by a float32 number": (lambda x, y: x * y.sum(), "f16", "f32"),
    "float32 sum of halves": (lambda x, y: x.sum(-1, dtype=torch.float32) + y.to(x.dtype).sum(), "f16", "f32"),
    "float32 softmax of halves": (lambda x, y: x.softmax(-1, dtype=torch.float32) + y.to(x.dtype), "f16", "f32"),
}


@pytest.mark.parametrize("name", PROMOTIONS)
def test_results_have_the_type_that_pytorch_gives_them(name: str) -> None:
    fn, *types = PROMOTIONS[name]
    floats = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
    x, y = (randn(4, 4, seed=i).to(floats[dtype]) for i, dtype in enumerate(types))
    program = lower_region(record(fn, {"x": x, "y": y})).program
    (output,) = program.outputs.values()
    assert floats[output.dtype] is fn(x, y).dtype
