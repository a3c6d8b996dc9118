"""`mugraph.optimize` of what is defined in a notebook's cells, which stands in no file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """\
import mugraph, torch
import torch.nn.functional as functional
from torch import nn
from tests.support.interpreted import taken
"""
SHARPNESS = "SHARPNESS = 3.0\nNOTES = {'kept': [1, 2]}\n"
WEIGHED = """\
# a cell of its own
def weighed(h, gain, kind=functional.softmax):
    return kind(h * SHARPNESS, dim=-1) * gain
"""
PARTS = """\
class Mixer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.into = nn.Linear(size, size, bias=False)
        self.gain = nn.Parameter(torch.rand(size))

    def forward(self, h):
        return weighed(self.into(h), self.gain)
"""
NET = """\
class Net(nn.Module):
    def __init__(self, size=64, depth=2):
        super().__init__()
        self.mixers = nn.ModuleList(Mixer(size) for _ in range(depth))
        self.depth = depth

    def forward(self, h):
        for mixer in self.mixers:
            print(end="")
            h = h + mixer(h)
        return h
"""
CALLED = """\
net, h = Net().eval(), torch.randn(16, 64)
with torch.no_grad():
    want = net(h)
    fast = mugraph.optimize(net, h, budget=1)
    print(fast)
    print(taken(lambda: torch.testing.assert_close(fast(h), want)))
"""
AGAIN = """
with torch.no_grad():
    print(taken(lambda: torch.testing.assert_close(fast(h), {want})))
"""


def printed(folder: Path, *cells: str, status: int = 0) -> tuple[list[str], str]:
    """What the cells print, and the last line of standard error."""
    (folder / "cells.json").write_text(json.dumps(cells))
    command = [sys.executable, "-m", "tests.support.cells", str(folder / "cells.json")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=Path(__file__).parents[3])
    assert ran.returncode == status, ran.stderr
    return ran.stdout.splitlines(), (ran.stderr.splitlines() or [""])[-1]


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_INTERPRET", "1")


def test_a_model_of_several_cells(tmp_path: Path) -> None:
    """Then a function it calls is changed in a later cell, and changed back: the kernel is taken for what it was made
    of alone."""
    changed = WEIGHED.replace("* gain", "- gain")
    said, _ = printed(
        tmp_path, HEAD, SHARPNESS, WEIGHED, PARTS, NET, "raise_if_run_again = 1\nassert 'fast' not in globals()\n",
        CALLED,
        changed + AGAIN.format(want="net(h)"), WEIGHED + AGAIN.format(want="want"),
        "SHARPNESS = 2.0\n" + AGAIN.format(want="net(h)"),
    )  # fmt: skip
    assert said[0].startswith("<mugraph.Optimized Net: kernels for 1 of 1 region")
    assert said[1:] == ["2", "0", "2", "0"]
