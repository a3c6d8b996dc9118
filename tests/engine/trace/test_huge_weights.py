"""A model whose weights have more bytes than the computer has memory is traced: none of them is allocated."""

from __future__ import annotations

from pathlib import Path

import psutil
from mugraph.trace.tracer import trace_file

TEXT = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.up = nn.Linear(inner, outer)
        self.down = nn.Linear(outer, inner)

    def forward(self, x):
        return torch.tanh(self.down(torch.relu(self.up(x)))) * x


def get_inputs():
    return [torch.rand(10, {size})]


def get_init_inputs():
    return [{size}, {size}]
"""


def test_its_weights_have_shapes_alone(tmp_path: Path) -> None:
    size = 1 << 16
    while 2 * 4 * size * size < 2 * psutil.virtual_memory().total:
        size *= 2
    path = tmp_path / "model.py"
    path.write_text(TEXT.format(size=size))
    found = trace_file(path)
    assert not found.errors
    (region,) = found.regions
    assert (size, size) in [info.shape for info in region.values.values()]
