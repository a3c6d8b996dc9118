"""An estimated gain is that of the whole region: what stays PyTorch's own is on both sides."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.baseline.cost import baseline
from mugraph.events import Done, RegionResult
from mugraph.ir.calls import Call
from mugraph.pipeline import Options, run
from mugraph.targets import TARGETS

BESIDE_CONVOLUTION = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[8, 64, 56, 56], w=f16[64, 32, 3, 3]
def f(x, w):
    y = torch.tanh(torch.sigmoid(x) * x) * 2
    return F.conv_transpose2d(y, w, stride=2, padding=3)  # leaves out places that a kernel reaches: it has no rule
"""
BETWEEN = """\
import torch


# mugraph: x=f16[4096, 512]
def f(x):
    return torch.tanh(torch.cumprod(torch.tanh(x * 3 + 1) * x, -1) * 2) + 1
"""
RANGED = BETWEEN.replace("x=f16[4096, 512]", "t=1024..4096, x=f16[t, 512]")


def solved(tmp_path: Path, text: str) -> RegionResult:
    path = tmp_path / "model.py"
    path.write_text(text)
    options = Options(target="h200", measure=False, budget_s=2)
    (done,) = [event for event in run(path, None, options) if isinstance(event, Done)]
    (result,) = done.result.regions
    return result


def eager_us(calls: list[Call], result: RegionResult) -> float:
    return baseline(calls, result.region.values, (), TARGETS["h200"]).eager_us


@pytest.mark.parametrize(("text", "name"), [(BESIDE_CONVOLUTION, "conv_transpose2d"), (BETWEEN, "cumprod")])
def test_what_stays_is_on_both_sides(tmp_path: Path, text: str, name: str) -> None:
    result = solved(tmp_path, text)
    kept = eager_us([call for call in result.region.calls if name in call.target], result)
    ours = sum(unit.solution.estimate_us for unit in result.units if unit.solution is not None)
    timing = result.timing
    assert kept > 0
    assert timing.optimized_us is not None
    assert timing.baseline_us is not None
    assert timing.optimized_us >= kept + ours
    whole = eager_us(list(result.region.calls), result)
    assert timing.baseline_us == pytest.approx(whole, rel=0.25), "that of all its calls, and of launching them once"


def test_what_stays_varies_with_a_size(tmp_path: Path) -> None:
    timing = solved(tmp_path, RANGED).timing
    fixed = solved(tmp_path, BETWEEN).timing
    assert [row.size for row in timing.sizes][-1] == 4096
    # PyTorch's time is added up over the units, into which the two may be divided otherwise.
    assert timing.sizes[-1].baseline_us == pytest.approx(fixed.baseline_us, rel=0.01)
    assert timing.sizes[0].baseline_us is not None
    assert timing.sizes[0].baseline_us < 0.7 * (fixed.baseline_us or 0)
