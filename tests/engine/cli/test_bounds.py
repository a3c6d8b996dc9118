"""How far a search goes is a setting: with fewer operators allowed, fewer programs are found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mugraph.cli import run

TEXT = """\
import torch


# mugraph: x=f16[16, 256], w=f16[256, 512], a=f16[256, 16], b=f16[16, 512]
def adapted(x: torch.Tensor, w: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x @ w + (x @ a) @ b
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    return path


def topologies(model: Path, capfd: pytest.CaptureFixture[str], *more: str) -> int:
    quick = ("--json", "--no-measure", "--target", "h200", "--budget", "1", "--kernels", "1")
    assert run(["optimize", str(model), *quick, *more]) == 0
    (region,) = json.loads(capfd.readouterr().out)["regions"]
    assert region["status"] == "improved"
    return region["search"]["topologies"]


def test_operators_of_a_block(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The second run is no answer from the store to the first one's question."""
    assert topologies(model, capfd) > topologies(model, capfd, "--operators", "6") > 0
