"""Code that turns gradients off in the middle: in a recorded call that wants none anyway, that changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mugraph.ir.region import Region
from mugraph.recording.memory import pictured
from mugraph.trace.tracer import trace_file

from .conftest import Record

MODEL = """
import torch
from torch import nn


class Scored(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, dim))

    def forward(self, x):
        y = torch.tanh(x @ self.weight)
        with {context}:
            picked = torch.softmax(y, dim=-1) * x
        return torch.exp(picked) + y
"""
CALL = """
import torch
import model

scored = model.Scored(32){frozen}
{around}
    scored(torch.randn(8, 32))
"""
CONTEXTS = ("torch.no_grad()", "torch.inference_mode()", "torch.set_grad_enabled(self.training)")


def found(record: Record, folder: Path, context: str, **call: str) -> list[Region]:
    path = folder / "model.py"
    path.write_text(MODEL.format(context=context), encoding="utf-8")
    (folder / "main.py").write_text(CALL.format(**call), encoding="utf-8")
    ran = record(sys.executable, "main.py")
    assert ran.returncode == 0, ran.stderr
    trace = trace_file(path, pictures=pictured(path, path.read_text()), check=True)
    assert trace.errors == ()
    return [region for region in trace.regions if region.status is None]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    "call",
    [
        {"frozen": ".requires_grad_(False).eval()", "around": "if True:"},
        {"frozen": ".eval()", "around": "with torch.no_grad():"},
    ],
)
def test_a_region_goes_across_where_nothing_wants_gradients(
    record: Record, tmp_path: Path, context: str, call: dict[str, str]
) -> None:
    (region,) = found(record, tmp_path, context, **call)
    assert context in region.text


@pytest.mark.parametrize("context", CONTEXTS)
def test_it_ends_there_where_the_weights_want_them(record: Record, tmp_path: Path, context: str) -> None:
    regions = found(record, tmp_path, context, frozen=".eval()", around="if True:")
    assert len(regions) > 1
    assert not any(context in region.text for region in regions)
