"""What the ordinary report says of what no kernel is for: the operator with its line, and what the rest would cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.cli import run

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: scores=f32[64, 300], bias=f32[300]
def ranked(scores, bias):
    shifted = F.silu(scores + bias) * 2.0
    ordered, _ = torch.sort(shifted, dim=-1)
    return torch.exp(-ordered * ordered) + ordered


# mugraph: rows=f32[64, 70]
def padded(rows):
    wider = F.pad(rows, (1, 1))
    return wider.relu()


# mugraph: rows=f32[64, 70]
def ordered(rows):
    return torch.sort(rows).values
"""

pytestmark = pytest.mark.usefixtures("own_cache")


def test_operators_and_costs_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "reasons.py"
    file.write_text(TEXT)
    assert run(["optimize", str(file), "--target", "h200", "--no-measure", "--compare-with", "code"]) == 0
    captured = capfd.readouterr()
    said = " ".join(captured.out.split())
    assert "ranked lines 7-9 improved" in said
    assert "torch.sort in line 8 is outside the algebra, and PyTorch's own" in said
    costs = "nothing in it is worth a kernel of its own: PyTorch runs it as 2 kernels, estimated at"
    assert f"torch.nn.functional.pad in line 14 is outside the algebra; {costs}" in said
    assert "ordered has no region: torch.sort in line 20 is a kernel of PyTorch's own" in captured.err
