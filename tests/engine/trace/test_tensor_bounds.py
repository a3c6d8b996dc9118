"""Slices whose bounds are tensors: the slice stays PyTorch's, and what is around it has its regions."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.trace.tracer import trace_file

TEXT = """\
import torch


# mugraph: rows=f32[6, 48]
def halved(rows):
    middle = torch.tensor(rows.shape[1] // 2)
    first, second = rows[:, :middle], rows[:, middle:]
    return torch.tanh(first) * torch.sigmoid(second)


@torch.jit.script
def gate(both, count):
    kept = count[0]
    return torch.relu(both[:, :kept]) * both[:, kept:]


# mugraph: x=f32[4, 40]
def scripted(x):
    wide = torch.softmax(x, -1) * x
    return gate(wide, torch.IntTensor([20])) + 1.0


# mugraph: x=f32[12, 16], step=i64[1]
def strided(x, step):
    some = x[:: step[0] + 1]
    return torch.exp(some) / (1 + some.abs())
"""


@pytest.mark.parametrize("function", ["halved", "scripted", "strided"])
def test_the_rest_is_traced(tmp_path: Path, function: str) -> None:
    path = tmp_path / "bounds.py"
    path.write_text(TEXT)
    regions = [one for one in trace_file(path).regions if one.function == function]
    assert regions
    assert {one.status for one in regions} == {None}
    for region in regions:
        assert all(call.target != "Tensor.__getitem__" for call in region.calls)
        assert len(region.calls) >= 2
