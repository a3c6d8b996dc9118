"""How far a search goes is a setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.cli import run

TEXT = """\
import torch


# mugraph: x=f16[16, 256], w=f16[256, 512]
def normed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)) @ w
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    return path


def searched(model: Path, capfd: pytest.CaptureFixture[str], *more: str) -> str:
    quick = ("-v", "--no-measure", "--target", "h200", "--budget", "1", "--kernels", "1")
    assert run(["optimize", str(model), *quick, *more]) == 0
    return " ".join(capfd.readouterr().out.split())


def test_operators_of_a_block(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Seven of its own and two more; the second run is no answer from the store to the first one's question."""
    assert "complete to 9 operators" in searched(model, capfd)
    assert "complete to 8 operators" in searched(model, capfd, "--operators", "8")
