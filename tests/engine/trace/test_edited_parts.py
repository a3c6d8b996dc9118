"""Files whose parts are in files that were edited before: the code that kernels replace there is part of a region here,
which the kernels' tests do not end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.trace.partition import Regions, only, targets

KERNELS = """
_path = "mugraph_runtime_0123456789.py"
raise SystemExit("it is not run")
"""
PARTS = {
    "statements": """
import parts_mugraph as mugraph_kernels
import torch

def scaled(x, gain, power=2):
    if mugraph_kernels.scaled_fits(x, gain, power):  # mugraph: 0123456789
        y = mugraph_kernels.scaled(x, gain, power)
    else:
        y = x * torch.rsqrt(x.pow(power).mean(-1, keepdim=True) + 1e-6)
    return y * gain
""",
    "ways": """
import parts_mugraph as mugraph_kernels
import torch

def scaled(x, gain, power=2):
    if mugraph_kernels.scaled_fits(x, gain):  # mugraph: 0123456789
        y = mugraph_kernels.scaled(x, gain)
    elif mugraph_kernels.scaled_2_fits(x, gain):  # mugraph: 0123456780
        y = mugraph_kernels.scaled_2(x, gain)
    else:
        y = x * torch.rsqrt(x.pow(power).mean(-1, keepdim=True) + 1e-6)
    return y * gain
""",
    "expression": """
import parts_mugraph as mugraph_kernels
import torch

def scaled(x, gain, power=2):
    return (
        mugraph_kernels.scaled(x, power)  # mugraph: 0123456789
        if mugraph_kernels.scaled_fits(x, power)
        else x * torch.rsqrt(x.pow(power).mean(-1, keepdim=True) + 1e-6)
    ) * gain
""",
}
WHOLE = """
    from parts import scaled

    # mugraph: x=f32[16, 32], gain=f32[32], w=f32[32, 24]
    def whole(x, gain, w):
        y = torch.relu(scaled(x, gain) @ w)
        return torch.softmax(y, -1)
    """


@pytest.mark.parametrize("part", PARTS)
def test_their_code_is_part_of_one_region(regions: Regions, tmp_path: Path, part: str) -> None:
    (tmp_path / "parts.py").write_text(PARTS[part])
    (tmp_path / "parts_mugraph.py").write_text(KERNELS)
    region = only(regions(WHOLE))
    assert targets(region)[0] == "Tensor.pow"
    assert targets(region)[-1] in ("torch.softmax", "Tensor.softmax")
    assert not any("mugraph_kernels" in guard for guard in region.guards)


def test_a_file_that_is_only_called_so_is_run(regions: Regions, tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("from own_mugraph import scaled\n")
    (tmp_path / "own_mugraph.py").write_text("def scaled(x, gain):\n    return (x * 3 + 1) * gain\n")
    assert "Tensor.mul" in targets(only(regions(WHOLE)))
