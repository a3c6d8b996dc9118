"""A region is divided among generated kernels and PyTorch's own in the way that is fastest by estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mugraph.events import Done, RegionResult
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import SearchUnit
from mugraph.pipeline import Options, run
from mugraph.plans.plan import KernelStep
from mugraph.solve.choosing import Way, fastest_measured, near_ones
from mugraph.solve.divisions import Division, all_left, fastest, left_to_pytorch, to_leave
from mugraph.solve.large_products import large_products
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.tune.messages import Subject
from mugraph.tune.statistics import Summary
from mugraph.units.region_units import cut_region

from tests.engine.solve.machine import HERE, Machine

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


CONVOLVED = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[16, 64, 64, 64], w=f16[64, 32, 3, 3], b=f16[32], r=f16[16, 32, 64, 64]
def up(x, w, b, r):
    return F.silu(F.conv_transpose2d(x, w, b, padding=1)) + r
"""


def test_a_convolution_apart_from_its_bias_counts_for_the_unit_that_has_both(tmp_path: Path) -> None:
    target = TARGETS["h200"]
    path = tmp_path / "model.py"
    path.write_text(CONVOLVED)
    (region,) = trace_file(path).regions
    (unit,) = [part for part in cut_region(region)[1] if isinstance(part, SearchUnit)]
    left = [frozenset(call.outputs) for call in left_to_pytorch(unit)]
    assert len(left) == 1
    cut, parts = cut_region(region, left)
    apart = Division(cut, list(parts), [])
    all_of_it = apart.us(target)
    assert all_of_it is not None
    assert apart.us_around(unit, target) == pytest.approx(all_of_it)
    assert apart.us_beside(apart, unit, target) == (pytest.approx(all_of_it), pytest.approx(all_of_it))


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


FEED_FORWARD = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[{rows}, 1024], skip=f16[{rows}, 1024], gain=f16[1024], gate=f16[4096, 1024], up=f16[4096, 1024]
def widened(x, skip, gain, gate, up):
    y = F.rms_norm(x + skip, (1024,), gain, 1e-6)
    return F.silu(F.linear(y, gate)) * F.linear(y, up)
"""
LONG = 8192
"""Rows with which the way that leaves the products to PyTorch is faster by far, whatever the search of the other finds
in its time."""


def units_of(path: Path) -> list[SearchUnit]:
    return [
        part for region in trace_file(path).regions for part in cut_region(region)[1] if isinstance(part, SearchUnit)
    ]


@pytest.mark.parametrize(("rows", "count"), [(LONG, 2), (8, 0)])
def test_products_of_many_rows_that_share_a_norm_may_be_left_to_pytorch(tmp_path: Path, rows: int, count: int) -> None:
    path = tmp_path / "model.py"
    path.write_text(FEED_FORWARD.format(rows=rows))
    units = units_of(path)
    assert sum(len(large_products(unit)) for unit in units) == count
    left = [call.target.rpartition(".")[2] for unit in units for call in left_to_pytorch(unit)]
    assert left == ["linear"] * count


PROJECTED = """\
import torch
import torch.nn.functional as F


# mugraph: x=bf16[2048, 4096], gain=bf16[4096], q=bf16[4096, 4096], k=bf16[4096, 4096], v=bf16[4096, 4096]
def projected(x, gain, q, k, v):
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * gain
    return F.layer_norm(F.linear(y, q), (4096,)), F.layer_norm(F.linear(y, k), (4096,)), F.linear(y, v)
"""


def test_products_that_share_a_norm_are_all_left_with_it(tmp_path: Path) -> None:
    """The norm is in the unit of the first; without that one it is in the unit of the next, and so on."""
    path = tmp_path / "model.py"
    path.write_text(PROJECTED)
    (region,) = trace_file(path).regions
    _, whole = cut_region(region)
    units = [part for part in whole if isinstance(part, SearchUnit)]
    assert len([call for unit in units for call in left_to_pytorch(unit)]) < 3
    left = all_left(whole, lambda left: cut_region(region, left)[1])
    linears = [frozenset(call.outputs) for call in region.calls if call.target.endswith("linear")]
    assert sorted(left, key=min) == linears
    _, parts = cut_region(region, left)
    made = [[call.target.rpartition(".")[2] for call in one.calls] for one in parts if isinstance(one, SearchUnit)]
    assert made == [["pow", "mean", "add", "rsqrt", "mul", "mul"], ["layer_norm"], ["layer_norm"]]


def test_a_product_that_reads_its_inputs_and_has_something_after_it_is_a_kernel_graph(tmp_path: Path) -> None:
    """The search finds the library's kernel for it, with one that does the rest: no cut is needed."""
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\nimport torch.nn.functional as F\n\n\n"
        "# mugraph: x=bf16[4096, 2048], w=bf16[8192, 2048]\n"
        "def squared(x, w):\n    y = F.linear(x, w)\n    return y * y + y\n"
    )
    assert [large_products(unit) for unit in units_of(path)] == [frozenset()]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> RegionResult:
    path = tmp_path_factory.mktemp("wide") / "model.py"
    path.write_text(FEED_FORWARD.format(rows=LONG))
    options = Options(target="h200", measure=False, budget_s=2)
    (done,) = [event for event in run(path, None, options) if isinstance(event, Done)]
    (result,) = done.result.regions
    return result


def test_large_products_stay_pytorchs_and_what_is_around_them_is_kernels(wide: RegionResult) -> None:
    assert wide.plan is not None, wide.reason
    kernels = [step for step in wide.plan.steps if isinstance(step, KernelStep)]
    made = [[call.target.rpartition(".")[2] for call in step.unit.calls] for step in kernels]
    assert made == [["add", "rms_norm"], ["silu", "mul"]]
    assert wide.timing is not None
    assert wide.timing.speedup is not None
    assert wide.timing.speedup > 1.05, "than the code as it runs"


def test_calls_are_left_to_pytorch_where_their_unit_is_not_faster_with_them(wide: RegionResult, tmp_path: Path) -> None:
    target = TARGETS["h200"]
    path = tmp_path / "model.py"
    path.write_text(FEED_FORWARD.format(rows=LONG))
    (region,) = trace_file(path).regions
    whole_region, whole = cut_region(region)
    together = Division(whole_region, list(whole), [])  # no kernel: the calls as they are
    left = all_left(whole, lambda left: cut_region(region, left)[1])
    assert wide.plan is not None
    parts = [step.unit if isinstance(step, KernelStep) else step for step in wide.plan.steps]
    apart = Division(wide.region, parts, list(wide.units))
    assert left
    assert to_leave(left, apart, together, target) == left
    slow = Division(wide.region, parts, [])
    assert to_leave(left, slow, apart, target) == []


def test_ways_that_are_expected_to_take_as_long_are_measured(wide: RegionResult) -> None:
    target = TARGETS["h200"]
    assert wide.plan is not None
    parts = [step.unit if isinstance(step, KernelStep) else step for step in wide.plan.steps]
    first, same = (Division(wide.region, parts, list(wide.units)) for _ in range(2))
    other = Division(wide.region, parts[1:], list(wide.units))
    assert near_ones([first, same], target) == [same], "of the same parts, one is"
    assert {id(one) for one in near_ones([first, other], target)} <= {id(first), id(other)}


@dataclass
class SlowFirst(Machine):
    """The first that is compared takes longer than others."""

    def compare(self, subjects: Sequence[Subject], inputs: object, **_: object) -> dict[str, Summary]:
        took = 2.0 if self.compared else 3.0
        self.compared += subjects
        return {subject.name: Summary(took, 0.01, 9) for subject in subjects}


def quiet() -> Iterator[None]:
    yield from ()


@pytest.mark.parametrize("text", ["a module", Rejected("it cannot be written")])
def test_the_way_that_takes_least_is_taken(wide: RegionResult, text: str | Rejected) -> None:
    assert wide.plan is not None
    first, other = (Division(wide.region, [], []) for _ in range(2))
    machine = SlowFirst()

    def written(*_: object) -> str:
        if isinstance(text, Rejected):
            raise text
        return text

    timer = SimpleNamespace(
        tools=SimpleNamespace(measurer=machine, pool=None), device=HERE, store=None, number=0,
        peers=SimpleNamespace(specs=lambda _: (), quiet=quiet), module_text=written, cancelled=lambda: False,
    )  # fmt: skip
    measuring = fastest_measured([Way(one, wide.plan, {}) for one in (first, other)], cast(Any, timer))
    found: Division | None = None
    try:
        while True:
            next(measuring)
    except StopIteration as end:
        found = end.value
    assert found is (None if isinstance(text, Rejected) else other)
    assert len(machine.compared) == (0 if isinstance(text, Rejected) else 2)
