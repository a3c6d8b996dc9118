"""A search unit as plain calls computes what the region computes."""

from __future__ import annotations

from pathlib import Path

import torch
from mugraph.codegen.plain import FUNCTION, plain_source
from mugraph.trace.pieces import pieces
from mugraph.trace.region import LaxPiece
from mugraph.trace.tracer import trace_file

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
    (piece,) = [unit for unit in pieces(region) if isinstance(unit, LaxPiece)]
    text, values = plain_source(piece)
    scope: dict = {}
    exec(compile(text, "plain", "exec"), scope)
    exec(compile(TEXT, "model", "exec"), scope)
    given = {v: torch.randn(region.values[v].shape) for v in values}
    by_name = {live.expression: given[live.value] for live in region.live_ins}
    torch.testing.assert_close(scope[FUNCTION](*given.values()), scope["norm_linear"](**by_name))
