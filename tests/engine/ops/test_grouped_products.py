"""torch.nn.functional.grouped_mm: a batched product where all groups have one size; else PyTorch's own kernel, beside
which the rest of a region has kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.events import Done, FileResult
from mugraph.ir.mugraph import GraphKernel, LibraryKernel
from mugraph.ir.ops import Kind
from mugraph.ir.region import PlainCalls, SearchUnit
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.pipeline import Options, run
from mugraph.trace.tracer import trace_file
from mugraph.units.outside import outside_words
from mugraph.units.region_units import cut_region

from tests.engine.ops.harness import evaluate, lower_region, parts, record, well_formed
from tests.engine.units.regions import cut

A, W = torch.randn(3, 10, 16), torch.randn(3, 16, 40)
ENDS = torch.tensor([4, 4, 10], dtype=torch.int32)


@pytest.mark.parametrize(
    "function", [lambda a, w: F.grouped_mm(a, w), lambda a, w: torch._grouped_mm(input=a, mat2=w, offs=None)]
)
def test_groups_of_one_size_are_a_batched_product(function: Any) -> None:
    tensors = {"a": A, "w": W}
    region = record(function, tensors)
    lowered = lower_region(region)
    well_formed(lowered)
    (got,) = evaluate(lowered.program, parts(lowered, {one.value: tensors[one.expression] for one in region.live_ins})
                      ).values()  # fmt: skip
    torch.testing.assert_close(got, A.double() @ W.double())
    torch.testing.assert_close(got.float(), function(A, W))


def test_what_is_around_them_is_one_unit_with_them() -> None:
    (unit,) = cut(lambda a, w: F.silu(F.grouped_mm(a, w)), a=A, w=W)
    assert isinstance(unit, SearchUnit)
    assert any(op.kind is Kind.DOT for op in unit.program.ops)


def test_groups_of_several_sizes_are_refused() -> None:
    with pytest.raises(NotLowerable, match="with offs multiplies groups whose sizes are numbers of a tensor"):
        lower_region(record(lambda a, w, offs: F.grouped_mm(a, w, offs=offs), {"a": A[0], "w": W, "offs": ENDS}))


SOURCE = """import torch
import torch.nn.functional as F


# mugraph: x=bf16[24, 64], g=bf16[64], up=bf16[3, 64, 48], gate=bf16[3, 64, 48], down=bf16[3, 48, 64], ends=i32[3]
def experts(x, g, up, gate, down, ends):
    h = F.rms_norm(x, (64,), g)
    inner = F.silu(F.grouped_mm(h, gate, offs=ends)) * F.grouped_mm(h, up, offs=ends)
    return x + 0.5 * F.grouped_mm(inner, down, offs=ends)


# mugraph: x=bf16[3, 24, 64], w=bf16[3, 64, 48]
def alike(x, w):
    return F.silu(F.grouped_mm(x, w))


# mugraph: x=bf16[24, 64], w=bf16[3, 64, 48], ends=i32[3]
def alone(x, w, ends):
    return F.grouped_mm(x, w, offs=ends)
"""


def optimized(path: Path) -> FileResult:
    for event in run(path, options=Options(target="h100", budget_s=1.0, measure=False)):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def test_they_are_nodes_of_the_regions_kernel_graph(tmp_path: Path) -> None:
    path = tmp_path / "experts.py"
    path.write_text(SOURCE)
    result = optimized(path)
    assert result.errors == ()
    (region,) = (one for one in result.regions if one.region.function == "experts")
    assert region.plan is not None, region.reason
    kernels = region.plan.mugraph.kernels
    calls = [kernel.call for kernel in kernels if isinstance(kernel, LibraryKernel)]
    assert [call.partition("(")[0] for call in calls] == ["torch._grouped_mm"] * 3
    assert sum(isinstance(kernel, GraphKernel) for kernel in kernels) == 3
    assert isinstance(kernels[0], GraphKernel)
    assert isinstance(kernels[-1], GraphKernel)
    (alone,) = (one for one in result.regions if one.region.function == "alone")
    assert alone.plan is None
    assert alone.reason is not None
    assert "torch._grouped_mm in line 19 is outside the algebra" in alone.reason


def test_a_region_is_cut_there_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "experts.py"
    path.write_text(SOURCE)
    regions = {region.function: region for region in trace_file(path).regions}
    assert outside_words(regions["experts"]) == "torch._grouped_mm in lines 8, 9 is outside the algebra"
    found = cut_region(regions["experts"])[1]
    units = [part for part in found if isinstance(part, SearchUnit)]
    plain = [call.target for part in found if isinstance(part, PlainCalls) for call in part.calls]
    assert plain == ["torch._grouped_mm"] * 3
    assert len(units) == 3  # a norm; silu and a product; a residual
    assert any(op.kind is Kind.SUM for op in units[0].program.ops)
    assert {op.fn for op in units[1].program.ops} >= {"silu"}
    assert {op.kind for op in units[2].program.compute_ops} == {Kind.MUL, Kind.ADD}


def test_groups_of_one_size_are_not_outside(tmp_path: Path) -> None:
    path = tmp_path / "experts.py"
    path.write_text(SOURCE)
    (region,) = (region for region in trace_file(path).regions if region.function == "alike")
    assert outside_words(region) == ""
