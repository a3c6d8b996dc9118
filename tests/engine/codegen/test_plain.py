"""A search unit as plain calls computes what the region computes."""

from __future__ import annotations

from pathlib import Path

import torch
from mugraph.codegen.plain import FUNCTION, plain_source
from mugraph.ir.region import SearchUnit
from mugraph.solve.paying import plain_specs
from mugraph.trace.tracer import trace_file
from mugraph.units.search_units import single_units

TEXT = """\
import torch


# mugraph: x=f32[8, 64], w=f32[64, 32], g=f32[64]
def norm_linear(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g) @ w
"""


def test_it_runs_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    text, values = plain_source(unit)
    scope: dict = {}
    exec(compile(text, "plain", "exec"), scope)
    exec(compile(TEXT, "model", "exec"), scope)
    given = {v: torch.randn(region.values[v].shape) for v in values}
    by_name = {live.expression: given[live.value] for live in region.live_ins}
    torch.testing.assert_close(scope[FUNCTION](*given.values()), scope["norm_linear"](**by_name))


PARTS = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[8, 64], w=f32[64, 48], b=f32[48]
def gated(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    gate, up = torch.addmm(b, x, w).chunk(2, dim=-1)
    return F.silu(gate) * up
"""


def test_a_kernel_of_parts_is_measured_against_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(PARTS)
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    assert unit.views
    text, values = plain_source(unit)
    specs = plain_specs(unit, values)
    scope: dict = {}
    exec(compile(text, "plain", "exec"), scope)
    exec(compile(PARTS, "model", "exec"), scope)
    given = {value: torch.randn(spec.shape) for value, spec in zip(values, specs, strict=True)}
    by_name = {live.expression: given[live.value] for live in region.live_ins}
    assert {name: tuple(tensor.shape) for name, tensor in by_name.items()} == {"x": (8, 64), "w": (64, 48), "b": (48,)}
    torch.testing.assert_close(scope[FUNCTION](*given.values()), scope["gated"](**by_name))
