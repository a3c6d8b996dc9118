"""One place along an axis whose size varies, of each of several rows: its strides are others at each size, and a kernel
reads a copy."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from mugraph.ir.region import SearchUnit
from mugraph.trace.regions.replay import replay
from mugraph.trace.tracer import trace_file
from mugraph.units.ranged import ranged_units, views_at

CODE = """\
import torch


# mugraph: t=1..64, x=f32[3, t, 32], w=f32[32, 48]
def f(x, w):
    return torch.relu(x[{index}] @ w)
"""


@pytest.mark.parametrize("index", [":, -1", ":, 0", ":, -1:"])
def test_a_kernel_reads_a_copy_of_it(tmp_path: Path, index: str) -> None:
    (tmp_path / "code_.py").write_text(CODE.format(index=index))
    (region,) = trace_file(tmp_path / "code_.py").regions
    (unit,) = (unit for unit in ranged_units(region)[0] if isinstance(unit, SearchUnit))
    assert [call.target for call in unit.views] == ["Tensor.__getitem__", "Tensor.contiguous"]
    (source,) = (live.value for live in region.live_ins if live.expression == "x")
    for size in (2, 17, 64):
        views, made = views_at(unit, size)
        x = torch.randn(3, size, 32)
        found = replay(views, {source: x})[views[-1].outputs[0]]
        assert torch.equal(found, x[:, 0] if index == ":, 0" else x[:, -1])
        assert found.stride() == made[views[-1].outputs[0]].strides == (32, 1)
