"""Without a device kernels are tested at small sizes, and there a mean is still the mean of as many as at full size."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from mugraph.cli import run

TEXT = """\
import torch


# mugraph: x=f32[64, 1024], w=f32[1024, 256]
def centred(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(-1, keepdim=True)) @ w


# mugraph: x=f32[64, 1024], w=f32[1024, 256]
def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)) @ w
"""


@pytest.fixture
def regions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> dict[str, dict]:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    assert run(["optimize", str(path), "--json", "--no-measure", "--target", "h200"]) == 0
    return {region["function"]: region for region in json.loads(capfd.readouterr().out)["regions"]}


def test_a_mean_that_is_taken_off_after_the_product_is_refused_and_a_scale_after_it_is_not(
    regions: dict[str, dict],
) -> None:
    """`xw - mean·Σw` loses digits: x is centred before it is multiplied, as the program does."""
    assert regions["centred"]["status"] == "improved"
    source = regions["centred"]["kernel_source"]
    assert re.search(r"torch\.mm\(difference, w|tl\.dot\(difference, w|tl\.dot\(x [+-] \w+\[:, None\], w", source), (
        source
    )
    assert regions["centred"]["verification"]["max_rel_error"] < 1e-5
    assert regions["scaled"]["status"] == "improved"
    assert regions["scaled"]["verification"]["passed"] is True
