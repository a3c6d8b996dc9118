"""Whether a call may take TF32 is read of PyTorch's settings while the program runs, whichever way they were set."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.ir.region import Region, SearchUnit
from mugraph.ir.text import format_program, parse_program
from mugraph.ops.tf32 import settings_of
from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.tracer import trace_file
from mugraph.units.search_units import single_units

TEXT = """\
import torch
import torch.nn.functional as F

{setting}


# mugraph: x=f32[2, 16, 18, 18], weight=f32[32, 16, 3, 3]
def convolved(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.relu(F.conv2d(x, weight))


# mugraph: rows={dtype}[24, 32], weight={dtype}[16, 32], column={dtype}[32]
def multiplied(rows: torch.Tensor, weight: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
    return F.relu(F.linear(rows, weight)) * torch.mv(rows, column)[:, None]
"""
NONE = ""
ALLOWED = "torch.backends.cuda.matmul.allow_tf32 = True"
HIGH = 'torch.set_float32_matmul_precision("high")'
EVERYWHERE = 'torch.backends.fp32_precision = "tf32"'
NOT_ALLOWED = "torch.backends.cudnn.allow_tf32 = False"
IEEE = 'torch.backends.cudnn.conv.fp32_precision = "ieee"'
OFF = 'import os\nos.environ["NVIDIA_TF32_OVERRIDE"] = "0"'


def traced(folder: Path, setting: str, dtype: str = "f32") -> tuple[Region, ...]:
    path = folder / "model.py"
    path.write_text(TEXT.format(setting=setting, dtype=dtype))
    trace = trace_file(path)
    assert not trace.errors
    assert trace_from_json(trace_to_json(trace)).regions == trace.regions
    return trace.regions


@pytest.mark.parametrize(
    ("setting", "convolution", "product"),
    [
        (NONE, True, False),
        (ALLOWED, True, True),
        (HIGH, True, True),
        (EVERYWHERE, True, True),
        (NOT_ALLOWED, False, False),
        (IEEE, False, False),
        (OFF, False, False),
    ],
    ids=["none", "allowed", "high", "everywhere", "not allowed", "ieee", "off"],
)
def test_settings(tmp_path: Path, setting: str, convolution: bool, product: bool) -> None:
    one, other = traced(tmp_path, setting)
    assert settings_of(one.calls) == (("cudnn",) if convolution else ())
    assert settings_of(other.calls) == (("cublas",) if product else ())
    # A matrix times a vector is computed by another function of cuBLAS's.
    assert [call.target for call in other.calls if call.tf32] == (["torch.nn.functional.linear"] if product else [])
    (unit,) = single_units(one)
    assert isinstance(unit, SearchUnit)
    text = format_program(unit.program)
    assert (": tf32.cudnn = dot(" in text) == convolution
    assert parse_program(text) == unit.program


def test_other_types_have_none(tmp_path: Path) -> None:
    assert settings_of(traced(tmp_path, ALLOWED, "f16")[1].calls) == ()
