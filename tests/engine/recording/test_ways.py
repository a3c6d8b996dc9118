"""A function that is called in several ways is traced once for each that takes time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.commands.common import Where
from mugraph.commands.optimize import optimize
from mugraph.pipeline import Options
from mugraph.recording.memory import pictured, recorded_shapes, seen
from mugraph.recording.ways import other_ways, with_way
from mugraph.trace.tracer import trace_file

PROGRAM = """\
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(32, 32)

    def forward(self, x, mask=None, half=False):
        y = self.q(x) @ x.mT
        if mask is not None:
            y = y + mask
        if half:
            y = y * 0.5
        return torch.softmax(y, -1)


if __name__ == "__main__":
    scores, x = Scores().eval(), torch.ones(16, 32)
    with torch.no_grad():
        for _ in range(40):
            scores(x)
        for _ in range(30):
            scores(x, torch.ones(16, 16))
        for _ in range(20):
            scores(x, half=True)
        for _ in range(20):
            scores(x)
    scores(x).sum().backward()
"""


@pytest.fixture
def path(tmp_path: Path, record: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every way counts, however little time this machine took for it."""
    monkeypatch.setattr("mugraph.recording.ways.LEAST", 0.0)
    path = tmp_path / "scores.py"
    path.write_text(PROGRAM)
    record(sys.executable, "scores.py")
    return path


def test_a_region_for_each_way(path: Path) -> None:
    shapes, pictures, calls = recorded_shapes(path, PROGRAM), pictured(path, PROGRAM), seen(path, PROGRAM)
    trace = trace_file(path, recorded_shapes=shapes, pictures=pictures)
    ways = other_ways(path, PROGRAM)
    assert len(ways) == 2, "calls that want a gradient are no way"
    for way in ways:
        more = trace_file(path, recorded_shapes=way.recorded_shapes, pictures=way.pictures)
        trace = with_way(trace, more, calls, PROGRAM)
        assert with_way(trace, more, calls, PROGRAM) == trace, "what is there is not added again"
    assert len({region.range for region in trace.regions}) == 1
    said = {guard for region in trace.regions for guard in region.guards if "half" in guard}
    assert said == {"half is True", "half is False"}
    assert sorted("mask" in [one.expression for one in region.live_ins] for region in trace.regions) == [
        False,
        False,
        True,
    ]


def test_each_is_offered_and_written(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = Options(target="h100", measure=False, budget_s=1)
    optimize(Where(path, None), options, as_json=True, apply=True, use_store=False, verbose=False)
    document = json.loads(capfd.readouterr().out)
    regions = document["regions"]
    assert [one["status"] for one in regions] == ["improved"] * 3, document["errors"]
    of = {one["share"]["of"] for one in regions}
    assert len(of) == 1
    assert sum(one["share"]["fits"] for one in regions) < of.pop(), "one wants a gradient"
    text = path.read_text()
    assert [text.count(word) for word in ("        if mugraph_kernels.", "        elif mugraph_kernels.")] == [1, 2]
