"""The code as it runs, for the device."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.research.early import searched
from mugraph.solve.code import code_of
from mugraph.targets import TARGETS

PROGRAM = """\
import torch


# mugraph: x=f32[64, 256], g=f32[256]
def made(x, g):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "jumps"),
    [
        ("return torch.relu(x * g) * 2", False),
        ("return torch.round(x * g) * 0.5", True),
        ("return (x * g).clamp(-448, 448).to(torch.float8_e4m3fn)", True),
    ],
)
def test_what_rounds_says_so_where_kernels_are_compared_with_it(tmp_path: Path, body: str, jumps: bool) -> None:
    path = tmp_path / "made.py"
    path.write_text(PROGRAM.format(body=body))
    plan = searched(path, TARGETS["h200"], 2.0).plan
    assert plan is not None
    assert code_of(plan.region, plan).jumps is jumps
    assert not code_of(plan.region).jumps
