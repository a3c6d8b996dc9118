"""Kernels that write numbers of eight bits pass the float test on a GPU, in the time of other kernels, and wrong ones
do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from mugraph.plans.plan import KernelStep
from mugraph.research.early import searched
from mugraph.tune.device import detect, resolve
from mugraph.verification.float_test import FloatTester

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 9), reason="no GPU that has float8"
    ),
]

PROGRAM = """\
import torch
import torch.nn.functional as F


# mugraph: x=bf16[{rows}, 1024], g=bf16[1024]
def codes(x, g):
    y = {value}
    s = y.abs().amax(-1, keepdim=True).float() / {most}
    return {code}, s
"""
FLOAT8 = "(y.float() / s).clamp(-448, 448).to(torch.float8_e4m3fn)"
WHOLE = "torch.round(y.float() / s).clamp(-128, 127).to(torch.int8)"


@pytest.mark.parametrize("rows", [64, 32768], ids=["few", "in_pieces"])
@pytest.mark.parametrize(("code", "most"), [(FLOAT8, 448.0), (WHOLE, 127.0)], ids=["float8", "int8"])
@pytest.mark.parametrize("value", ["x * g", "F.rms_norm(x, (1024,), g, 1e-6)"], ids=["scaled", "normed"])
def test_right_kernels_pass_and_spoiled_ones_do_not(
    tmp_path: Path, value: str, code: str, most: float, rows: int
) -> None:
    path = tmp_path / "codes.py"
    path.write_text(PROGRAM.format(rows=rows, value=value, code=code, most=most))
    result = searched(path, resolve("auto", detect()), 3.0)
    assert result.plan is not None, result.reason
    with FloatTester("cuda", timeout_s=60) as tester:
        for step in result.plan.steps:
            if not isinstance(step, KernelStep):
                continue
            source, program = result.sources[step.kernel.name], step.unit.program
            found = tester.test_kernel(source, program)
            assert found.passed, found.reason
            spoiled = source.jit.replace("tl.minimum(", "0.98 * tl.minimum(")
            assert spoiled != source.jit
            assert not tester.test_kernel(replace(source, jit=spoiled), program).passed
