"""Weights in nested namespaces, as checkpoints are read into where there are no modules: they are kept as they were."""

from __future__ import annotations

import sys
from pathlib import Path

from mugraph.recording.memory import pictured
from mugraph.trace.tracer import trace_file

from .conftest import Record

TEXT = """\
import types
import torch


class Reader:
    def __init__(self, width):
        self.weights = types.SimpleNamespace(layers={})
        for at in range(2):
            ffn = types.SimpleNamespace(mix=torch.zeros(width), up=torch.zeros(3 * width, width))
            self.weights.layers[at] = types.SimpleNamespace(ffn=ffn, scale=0.25)

    def feed(self, x, ffn, scale):
        return torch.square(torch.relu(ffn.up @ (x * ffn.mix))) * scale

    def read(self, x):
        for at in range(2):
            layer = self.weights.layers[at]
            x = x + self.feed(x, layer.ffn, layer.scale).view(3, -1).mean(0)
        return x


if __name__ == "__main__":
    with torch.no_grad():
        Reader(24).read(torch.zeros(24))
"""


def test_they_are_as_they_were(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "reader.py"
    path.write_text(TEXT)
    assert record(sys.executable, "reader.py").returncode == 0
    trace = trace_file(path, pictures=pictured(path, TEXT))
    assert {one.status for one in trace.regions} == {None}, [one.reason for one in trace.regions]
    read = {live.expression for region in trace.regions for live in region.live_ins}
    assert {"layer.ffn.up", "layer.ffn.mix"} <= read
    assert any("layer.scale == 0.25" in guard for region in trace.regions for guard in region.guards)
