"""A decoding loop whose cache grows by one key a step: recorded, searched for its lengths, applied; its kernels take
every call."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.in_folder import mugraph_in

STEP = """\
import torch


def step(query, key, value, keys, values):
    keys = torch.cat((keys, key), dim=1)
    values = torch.cat((values, value), dim=1)
    weights = torch.softmax(query @ keys.mT * 0.25, dim=-1)
    return weights @ values, keys, values
"""
MAIN = """\
import torch
from step import step
from tests.public.drivers.common import kernels_here

kernels_here()
torch.manual_seed(0)
with torch.no_grad():
    keys, values = torch.randn(2, 3, 32), torch.randn(2, 3, 16)
    for _ in range(20):
        query, key, value = torch.randn(2, 1, 32), torch.randn(2, 1, 32), torch.randn(2, 1, 16)
        all_keys, all_values = torch.cat((keys, key), 1), torch.cat((values, value), 1)
        want = torch.softmax(query @ all_keys.mT * 0.25, -1) @ all_values
        found, keys, values = step(query, key, value, keys, values)
        assert torch.allclose(found, want, atol=1e-5)
        assert torch.equal(keys, all_keys)
        assert torch.equal(values, all_values)
"""
LEAST = 0.95
"""Part of the calls that the kernels take."""


def test_its_kernels_take_the_calls(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(STEP)
    (tmp_path / "main.py").write_text(MAIN)
    mugraph = mugraph_in(tmp_path)
    program = ("--", sys.executable, "main.py")
    mugraph("record", *program)
    said = mugraph("optimize", "step.py", "--apply", "--json", "--no-measure", "--target", "h100", "--budget", "2")
    regions = json.loads(said)["regions"]
    assert any(one.get("dynamic", {}) and one["dynamic"]["largest"] == 22 for one in regions), regions
    checked = json.loads(mugraph("check", "--run", "--json", *program, TRITON_INTERPRET="1"))
    (found,) = checked["regions"]
    assert found["calls"] == 20
    assert found["taken"] >= LEAST * found["calls"], found["refused"]
