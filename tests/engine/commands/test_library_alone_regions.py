"""A region whose kernels are PyTorch's own, one of them for several of the code's calls: from the file to the edit."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from mugraph.cli import run
from mugraph.ir.json import mugraph_from_json
from mugraph.ir.mugraph import LibraryKernel
from mugraph.ir.spec import check_mugraph

from tests.engine.commands.documents import optimized

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[2048, 1024], w=f16[4096, 1024], b=f16[4096]
def activated(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.relu(F.linear(x, w, b))
"""

pytestmark = pytest.mark.usefixtures("own_cache")


def test_relu_comes_with_the_product(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.py"
    file.write_text(TEXT)
    (region,) = optimized(capfd, f"{file}:activated", "--budget", "60", "--apply")["regions"]
    assert region["status"] == "improved"
    graph = mugraph_from_json(region["mugraph"])
    assert check_mugraph(graph) == []
    (kernel,) = graph.kernels
    assert isinstance(kernel, LibraryKernel)
    assert kernel.call == "torch._addmm_activation(b, x, w.mT)"
    assert region["verification"]["passed"] is True
    assert 0 < region["verification"]["max_rel_error"] < 1e-2
    assert "@triton.jit" not in region["kernel_source"]
    text = (tmp_path / "model_mugraph.py").read_text()
    assert "torch._addmm_activation(b, x, w.mT, out=" in text
    spec = importlib.util.spec_from_file_location("launched", tmp_path / "model_mugraph.py")
    assert spec is not None
    assert spec.loader is not None
    launched = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(launched)
    x, w, b = (torch.randn(shape).half() for shape in ((2048, 1024), (4096, 1024), (4096,)))
    (launch,) = (value for name, value in vars(launched).items() if name.startswith("launch_"))
    expected = torch.relu(torch.nn.functional.linear(x, w, b))
    torch.testing.assert_close(launch(x, w, b), expected, rtol=1e-2, atol=5e-2)
    assert run(["revert", str(file)]) == 0
    assert file.read_text() == TEXT
