"""A mixture of experts whose tokens are routed by what they are: searched for any number of rows of an expert, applied,
and run with other data; its kernels take the calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.in_folder import mugraph_in

LAYER = """\
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, wide, inner):
        super().__init__()
        self.up, self.gate = nn.Linear(wide, inner, bias=False), nn.Linear(wide, inner, bias=False)
        self.down = nn.Linear(inner, wide, bias=False)

    def forward(self, x):
        return self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))


class Routed(nn.Module):
    def __init__(self, wide=64, inner=96, experts=4, each=2):
        super().__init__()
        self.router, self.each = nn.Linear(wide, experts, bias=False), each
        self.experts = nn.ModuleList([Expert(wide, inner) for _ in range(experts)])

    # COMMENT
    def forward(self, x):
        weights, chosen = torch.topk(torch.softmax(self.router(x), dim=-1), self.each, dim=-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, nth = torch.where(chosen == number)
            out[token] += weights[token, nth, None] * expert(x[token])
        return out
"""
MAIN = """\
import torch
from layer import Routed
from tests.public.drivers.common import kernels_here

kernels_here()
torch.manual_seed(0)
layer = Routed().eval()
with torch.no_grad():
    layer.router.weight[3] = -layer.router.weight[2]
    for calls in range(4):
        x = torch.randn(23, 64) + 0.1 * calls
        if calls == 3:
            x = layer.router.weight[2].expand(23, 64) * torch.rand(23, 1)  # expert 3 has no token
        weights, chosen = torch.topk(torch.softmax(x @ layer.router.weight.T, -1), 2, -1)
        want = torch.zeros_like(x)
        for row in range(23):
            for nth in range(2):
                one = layer.experts[chosen[row, nth]]
                gate, up = one.gate.weight @ x[row], one.up.weight @ x[row]
                want[row] += weights[row, nth] * (one.down.weight @ (gate * torch.sigmoid(gate) * up))
        torch.testing.assert_close(layer(x), want, atol=1e-5, rtol=1e-4)
"""
PROGRAM = ("--", sys.executable, "main.py")


def taken(folder: Path, comment: str, before: Sequence[str] = ()) -> None:
    """Searched and applied, its kernels take all calls with a token of the function that has the experts."""
    (folder / "layer.py").write_text(LAYER.replace("COMMENT", comment))
    (folder / "main.py").write_text(MAIN)
    mugraph = mugraph_in(folder)
    if before:
        mugraph(*before)
    said = mugraph("optimize", "layer.py", "--apply", "--json", "--no-measure", "--target", "h100", "--budget", "2")
    ranged = [one for one in json.loads(said)["regions"] if "dynamic" in one]
    assert {(one["function"], one["status"]) for one in ranged} <= {
        ("Routed.forward", "improved"),
        ("Expert.forward", "improved"),
    }
    (expert,) = [one for one in ranged if one["function"] == "Routed.forward"]
    assert {**expert["dynamic"], "faster_for": None} == {
        "name": "rows", "least": 1, "largest": 46, "faster_for": None
    }  # fmt: skip
    checked = json.loads(mugraph("check", "--run", "--json", *PROGRAM, TRITON_INTERPRET="1"))
    found = [one for one in checked["regions"] if one["calls"] == 16]
    assert [one["function"] for one in found] == ["Routed.forward"]
    (experts,) = found
    without_a_token = experts["calls"] - experts["taken"]
    assert 1 <= without_a_token <= 2, experts["refused"]  # of the last call
    assert [why["why"] for why in experts["refused"]] == ["token has 0 elements, the kernel is for 1 to 46"]


@pytest.mark.more
def test_its_kernels_take_the_calls(tmp_path: Path) -> None:
    taken(tmp_path, "mugraph: x=f32[23, 64]")


@pytest.mark.more
def test_so_they_do_where_a_recording_says_the_shapes(tmp_path: Path) -> None:
    taken(tmp_path, "shapes come from a recorded run", ("record", *PROGRAM))
