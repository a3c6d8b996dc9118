"""Arrays of NumPy's that objects keep, as the steps of a schedule: few numbers are kept, as those of lists are."""

from __future__ import annotations

import sys
from pathlib import Path

from mugraph.recording.memory import pictured
from mugraph.trace.picture import Array
from mugraph.trace.tracer import trace_file

from .conftest import Record

TEXT = """\
import numpy as np
import torch
from torch import nn


class Warm(nn.Module):
    def __init__(self, many):
        super().__init__()
        self.steps = np.concatenate((np.linspace(0.5, 0.1, 4), np.full(3, np.inf)))
        self.power = np.int64(2)
        self.limits = {"low": np.float32(-3), "high": np.array([[1.5, 2.5]], dtype=np.float16)}
        self.lin = nn.Linear(np.int64(16), 16)
        self.many = np.zeros(many)

    def forward(self, x, data, step):
        warm = self.steps[step]
        x = torch.tanh(self.lin(x) / warm) ** int(self.power)
        return torch.softmax(x.clamp(self.limits["low"], self.limits["high"][0, 1]), -1)


if __name__ == "__main__":
    with torch.no_grad():
        Warm(5000).eval()(torch.zeros(4, 16), np.arange(3), 1)
"""


def test_they_are_as_they_were(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "warm.py"
    path.write_text(TEXT)
    done = record(sys.executable, "warm.py")
    assert "not kept: self.many (an array of 5,000), data (an array of 3)" in done.stderr
    pictures = pictured(path, path.read_text())
    (seen,) = pictures.values()
    kept = {(one.dtype, one.shape, one.alone): one.items for one in seen.nodes if isinstance(one, Array)}
    assert kept["<f8", (7,), False][:4] == [0.5, 0.5 - 0.4 / 3, 0.5 - 0.8 / 3, 0.1]
    assert kept["<i8", (), True] in ([2], [16])
    assert kept["<f4", (), True] == [-3.0]
    assert kept["<f2", (1, 2), False] == [1.5, 2.5]


def test_what_reads_them_is_traced(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "warm.py"
    path.write_text(TEXT)
    record(sys.executable, "warm.py")
    found = trace_file(path, pictures=pictured(path, path.read_text()), check=True)
    assert found.errors == ()
    (region,) = found.regions
    assert region.status is None
    assert "_spelled(warm) == 'float64(0.3666666666666667)'" in region.guards
