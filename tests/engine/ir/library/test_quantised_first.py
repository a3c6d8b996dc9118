"""A norm, what is left of it in eight bits, and the product of those: one generated kernel, whose results are the
codes and their scales, and the library's product."""

from __future__ import annotations

from pathlib import Path

from mugraph.events import Done
from mugraph.ir.mugraph import LibraryKernel
from mugraph.pipeline import Options, run

SOURCE = """\
import torch
import torch.nn.functional as F


# mugraph: x=bf16[64, 1024], w=f8e4m3[2048, 1024], ws=f32[1, 2048], g=bf16[1024]
def linear(x, w, ws, g):
    h = F.rms_norm(x, (1024,), g, 1e-6).float()
    s = h.abs().amax(-1, keepdim=True).clamp(min=1e-4) / 448.0
    q = (h / s).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
    return torch._scaled_mm(q, w.t(), scale_a=s, scale_b=ws, out_dtype=torch.bfloat16)
"""


def test_one_kernel_and_the_product(tmp_path: Path) -> None:
    path = tmp_path / "linear.py"
    path.write_text(SOURCE)
    options = Options(target="h100", budget_s=2, measure=False)
    (done,) = (event for event in run(path, options=options) if isinstance(event, Done))
    (region,) = done.result.regions
    assert region.status == "improved", region.reason
    assert region.plan is not None
    kernels = region.plan.mugraph.kernels
    (name,) = region.sources
    assert [kernel.name for kernel in kernels if not isinstance(kernel, LibraryKernel)] == [name]
    assert sorted(tensor.dtype for tensor in region.sources[name].outputs) == ["f32", "f8e4m3"]
    calls = [kernel.call for kernel in kernels if isinstance(kernel, LibraryKernel)]
    assert any("_scaled_mm" in str(call) for call in calls)
