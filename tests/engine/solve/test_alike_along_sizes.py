"""One unit in two regions, each with a range: what is found for the one serves the other."""

from __future__ import annotations

from pathlib import Path

from mugraph.events import Done
from mugraph.pipeline import Options, run_trace
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import detect, resolve

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: t=2..3, q=f32[80, 144], x=f32[t, 64, 144], a=f32[144], b=f32[144]
def beside(q, x, a, b):
    return q * torch.sigmoid(q.sum(dim=-1, keepdim=True)), F.layer_norm(x, (144,), a, b)


# mugraph: t=2..3, x=f32[t, 64, 144], a=f32[144], b=f32[144]
def alone(x, a, b):
    return F.layer_norm(x, (144,), a, b)
"""


def test_numbers_of_values_are_the_regions_own(tmp_path: Path) -> None:
    path = tmp_path / "norms.py"
    path.write_text(TEXT)
    options = Options(target="h100", budget_s=4.0, measure=False)
    events = run_trace(trace_file(path), detect(), resolve("h100", detect()), options, None)
    result = next(event.result for event in events if isinstance(event, Done))
    assert [one.status for one in result.regions] == ["improved", "improved"], [one.reason for one in result.regions]
