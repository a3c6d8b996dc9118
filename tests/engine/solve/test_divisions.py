"""A region is divided among generated kernels and PyTorch's own in the way that is fastest by estimate."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done, RegionResult
from mugraph.ir.region import SearchUnit
from mugraph.pipeline import Options, run
from mugraph.plans.plan import KernelStep
from mugraph.solve.divisions import Division, fastest, left_to_pytorch
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.units.region_units import cut_region

ROTATED = """\
import torch
import torch.nn.functional as F


def turned(x):
    return torch.cat((-x[..., 64:], x[..., :64]), dim=-1)


# mugraph: q=bf16[1, {length}, 32, 128], k=bf16[1, {length}, 8, 128], v=bf16[1, {length}, 8, 128]
# mugraph: gain=bf16[128], cos=bf16[{length}, 128], sin=bf16[{length}, 128]
def attend(q, k, v, gain, cos, sin):
    q, k, v = F.rms_norm(q, (128,), gain, 1e-6).transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    q = q * cos + turned(q) * sin
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
"""


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> RegionResult:
    path = tmp_path_factory.mktemp("divided") / "model.py"
    path.write_text(ROTATED.format(length=2048))
    options = Options(target="h200", measure=False, budget_s=2)
    (done,) = [event for event in run(path, None, options) if isinstance(event, Done)]
    (result,) = done.result.regions
    return result


def test_long_attention_stays_pytorchs_and_what_is_before_it_is_one_kernel(long: RegionResult) -> None:
    assert long.plan is not None
    (kernel,) = [step for step in long.plan.steps if isinstance(step, KernelStep)]
    targets = {call.target.rpartition(".")[2] for call in kernel.unit.calls}
    assert {"rms_norm", "cat", "add"} <= targets
    assert "scaled_dot_product_attention" not in targets
    assert long.timing is not None
    assert long.timing.speedup is not None
    assert long.timing.speedup > 1.2, "than the code as it runs"


def test_the_fastest_division_is_taken(long: RegionResult) -> None:
    """With the kernel, rather than with the calls that it stands for."""
    target = TARGETS["h200"]
    used = {id(found.unit): found for found in long.units}
    assert long.plan is not None
    parts = [step.unit if isinstance(step, KernelStep) else step for step in long.plan.steps]
    with_kernel = Division(long.region, parts, [used[id(part)] for part in parts if id(part) in used])
    without = Division(long.region, parts, [])
    us, plain_us = with_kernel.us(target), without.us(target)
    assert us is not None
    assert plain_us is not None
    assert us < plain_us
    assert fastest([with_kernel, without], target) is with_kernel
    assert fastest([without, with_kernel], target) is with_kernel
    assert fastest([without, without], target) is without


def test_what_a_unit_has_to_be_faster_than(long: RegionResult) -> None:
    """It is what the parts take that compute something of it."""
    target = TARGETS["h200"]
    assert long.plan is not None
    parts = [step.unit if isinstance(step, KernelStep) else step for step in long.plan.steps]
    division = Division(long.region, parts, list(long.units))
    (unit,) = [part for part in parts if isinstance(part, SearchUnit)]
    (solution,) = [found.solution for found in long.units if found.unit is unit]
    assert solution is not None
    assert division.has(unit)
    assert not Division(long.region, [part for part in parts if part is not unit], []).has(unit)
    assert division.us_around(unit, target) == pytest.approx(solution.estimate_us)


GATED = """\
import torch
import torch.nn.functional as F


# mugraph: x=f8e4m3[2048, 4096], up=f8e4m3[4096, 4096], gate=f8e4m3[4096, 4096]
# mugraph: of_x=f32[2048, 1], of_up=f32[1, 4096], of_gate=f32[1, 4096]
def gated(x, up, gate, of_x, of_up, of_gate):
    a = torch._scaled_mm(x, up.t(), of_x, of_up, out_dtype=torch.bfloat16)
    b = torch._scaled_mm(x, gate.t(), of_x, of_gate, out_dtype=torch.bfloat16)
    return F.silu(b) * a


# mugraph: x=f8e4m3[16, 64], w=f8e4m3[32, 64], s=f32, t=f32
def alone(x, w, s, t):
    return torch._scaled_mm(x, w.t(), s, t, out_dtype=torch.bfloat16)
"""


def test_large_products_of_float8_stay_pytorchs_and_what_follows_is_one_kernel(tmp_path: Path) -> None:
    path = tmp_path / "gated.py"
    path.write_text(GATED)
    options = Options(target="h100", measure=False, budget_s=2, compare_with="code")
    (done,) = [event for event in run(path, None, options) if isinstance(event, Done)]
    result = next(one for one in done.result.regions if one.region.function == "gated")
    assert result.plan is not None, result.reason
    (kernel,) = [step for step in result.plan.steps if isinstance(step, KernelStep)]
    assert [call.target.rpartition(".")[2] for call in kernel.unit.calls] == ["silu", "mul"]
    assert result.status == "improved", result.reason


def test_products_of_float8_are_left_to_pytorch_where_something_else_is_computed(tmp_path: Path) -> None:
    path = tmp_path / "gated.py"
    path.write_text(GATED)
    units = {
        region.function: [part for part in cut_region(region)[1] if isinstance(part, SearchUnit)]
        for region in trace_file(path).regions
    }
    (gated,) = units["gated"]
    assert [call.target for call in left_to_pytorch(gated)] == ["torch._scaled_mm"] * 2
    assert [call for unit in units.get("alone", []) for call in left_to_pytorch(unit)] == []
