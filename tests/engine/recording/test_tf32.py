"""Whether PyTorch took TF32 in recorded calls, which the program that calls a function says, and not its file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mugraph.recording.memory import pictured, recorded_shapes
from mugraph.trace.tracer import trace_file

LAYERS = """\
import torch
from torch import nn

{imported}


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(4, 8, 3), nn.Linear(8, 16)

    def forward(self, x):
        return torch.softmax(self.out(self.conv(x).mean((2, 3))), -1)


# mugraph: a=f32[8, 32], b=f32[32, 16]
def plain(a, b):
    return torch.softmax(a @ b, -1)
"""
MAIN = """\
import torch
from layers import Layers

if __name__ == "__main__":
    {main}
    with torch.no_grad():
        Layers().eval()(torch.ones(2, 4, 9, 9))
"""
MATMUL = "torch.backends.cuda.matmul"
SETTINGS = {
    "nothing": ("", "pass", {"conv2d"}),
    "high": ("", "torch.set_float32_matmul_precision('high')", {"conv2d", "linear"}),
    "allowed": ("", f"{MATMUL}.allow_tf32 = True", {"conv2d", "linear"}),
    "by the newer setting": ("", f"{MATMUL}.fp32_precision = 'tf32'", {"conv2d", "linear"}),
    "over the file's": (f"{MATMUL}.fp32_precision = 'ieee'", f"{MATMUL}.fp32_precision = 'tf32'", {"conv2d", "linear"}),
    "not any more": (f"{MATMUL}.allow_tf32 = True", f"{MATMUL}.allow_tf32 = False", {"conv2d"}),
    "not for convolutions": ("", "torch.backends.cudnn.allow_tf32 = False", set[str]()),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_calls_take_tf32_as_they_did_in_the_run(name: str, tmp_path: Path, record: Callable[..., object]) -> None:
    imported, main, wanted = SETTINGS[name]
    path = tmp_path / "layers.py"
    path.write_text(LAYERS.format(imported=imported))
    (tmp_path / "main.py").write_text(MAIN.format(main=main))
    record(sys.executable, "main.py")
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    text = path.read_text()
    found = trace_file(path, recorded_shapes=recorded_shapes(path, text), pictures=pictured(path, text))
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == before
    took = {call.target.rpartition(".")[2] for one in found.regions for call in one.calls if call.tf32}
    calls = {call.target.rpartition(".")[2] for one in found.regions for call in one.calls}
    assert {"conv2d", "linear"} <= calls
    assert took - {"matmul", "__matmul__"} == wanted


def test_what_was_not_recorded_goes_by_the_file(tmp_path: Path, record: Callable[..., object]) -> None:
    path = tmp_path / "layers.py"
    path.write_text(LAYERS.format(imported=""))
    (tmp_path / "main.py").write_text(MAIN.format(main="torch.set_float32_matmul_precision('high')"))
    record(sys.executable, "main.py")
    text = path.read_text()
    found = trace_file(path, recorded_shapes=recorded_shapes(path, text), pictures=pictured(path, text))
    plain = next(one for one in found.regions if one.function == "plain")
    assert not any(call.tf32 for call in plain.calls)
