"""A function whose kernel reads items of an argument, as of a cache that is given as a pair."""

from __future__ import annotations

import ast
from pathlib import Path

from mugraph.events import Done
from mugraph.pipeline import Options, preview_text, run_trace
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import detect, resolve

CODE = """\
import torch


# mugraph: q=f32[2, 1, 32], k=f32[2, 1, 32], v=f32[2, 1, 32], past=(f32[2, 12, 32], f32[2, 12, 32])
def attend(q, k, v, past):
    k = torch.cat((past[0], k), dim=1)
    v = torch.cat((past[1], v), dim=1)
    y = torch.softmax(q @ k.transpose(-2, -1) * 0.125, dim=-1) @ v
    return y, (k, v)
"""


def test_the_module_names_them(tmp_path: Path) -> None:
    (tmp_path / "code_.py").write_text(CODE)
    device = detect()
    target = resolve("h100", device)
    options = Options(target="h100", budget_s=2.0, measure=False)
    events = run_trace(trace_file(tmp_path / "code_.py"), device, target, options, None)
    result = next(event.result for event in events if isinstance(event, Done))
    assert [one.status for one in result.regions] == ["improved"]
    text = preview_text(result.regions, tmp_path / "code_.py", target)
    assert text is not None
    tests = [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef) and one.name.endswith("_others")]
    assert [[arg.arg for arg in one.args.args] for one in tests] == [["q", "k", "v", "past", "item", "item_2"]]
