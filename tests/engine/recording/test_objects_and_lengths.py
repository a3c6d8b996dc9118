"""A function that is given an object, and prompts of several lengths: the object is as it was, the length a range."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mugraph.recording.memory import recorded
from mugraph.recording.ways import other_ways
from mugraph.trace.tracer import trace_file

from tests.engine.recording.conftest import Record
from tests.support.in_folder import mugraph_in

CODE = """\
import torch
import torch.nn.functional as F


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = torch.nn.Linear(width, 2 * width, bias=False)
        self.down = torch.nn.Linear(2 * width, width, bias=False)

    def forward(self, rows):
        return rows + self.down(F.silu(self.up(rows)))


def prefill(layer, rows, *, scale=1.0, **more):
    return layer(rows) * scale
"""
MAIN = """\
import torch
import code_
from tests.public.drivers.common import kernels_here

kernels_here()
torch.manual_seed(0)
models = [code_.Layer({width}).eval() for _ in range(2)]
with torch.no_grad():
    for at, length in enumerate({lengths}):
        rows = torch.randn(1, length, {width})
        model = models[at % 2]
        want = (rows + torch.nn.functional.silu(rows @ model.up.weight.mT) @ model.down.weight.mT) * 0.5
        torch.testing.assert_close(code_.prefill(model, rows, scale=0.5, top=3), want, rtol=1e-4, atol=1e-4)
"""


def test_a_range_is_traced_with_the_object(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "code_.py"
    path.write_text(CODE)
    (tmp_path / "main.py").write_text(MAIN.format(width=48, lengths=(5, 3, 11)))
    assert record(sys.executable, "main.py", PYTHONPATH=str(Path(__file__).parents[3])).returncode == 0
    way = next(one for one in other_ways(path, CODE) if "prefill" in one.comments)
    assert way.comments["prefill"] == ""  # no comment says what the object is
    assert way.recorded_shapes["prefill"]["rows"] == "f32[1, t, 48]"
    trace = trace_file(path, recorded_shapes=way.recorded_shapes, pictures=way.pictures)
    assert trace.errors == ()
    region = next(one for one in trace.regions if one.function == "prefill")
    assert region.dynamic is not None
    assert [(one.least, one.largest) for one in region.dynamic.ranges] == [(3, 11)]
    assert {one.expression for one in region.live_ins} >= {"rows", "layer.up.weight"}


def test_lengths_that_were_not_pictured_count(tmp_path: Path, record: Record) -> None:
    """Of many calls only some are kept as they were; the others have the same object."""
    path = tmp_path / "code_.py"
    path.write_text(CODE)
    (tmp_path / "main.py").write_text(MAIN.format(width=48, lengths=tuple(range(5, 27, 2))))
    assert record(sys.executable, "main.py", PYTHONPATH=str(Path(__file__).parents[3])).returncode == 0
    sets = recorded(path, CODE)["prefill"]
    assert any(one.picture is None for one in sets)
    way = next(one for one in other_ways(path, CODE) if "prefill" in one.comments)
    assert way.recorded_shapes["prefill"]["t"] == "5..25"
    assert "prefill" in way.pictures


def test_its_kernels_take_the_lengths_between(tmp_path: Path) -> None:
    (tmp_path / "code_.py").write_text(CODE)
    main = tmp_path / "main.py"
    main.write_text(MAIN.format(width=32, lengths=(9, 2, 13)))
    mugraph = mugraph_in(tmp_path)
    program = ("--", sys.executable, "main.py")
    mugraph("record", *program)
    mugraph("optimize", "code_.py", "--apply", "--json", "--no-measure", "--target", "h100", "--budget", "2")
    main.write_text(MAIN.format(width=32, lengths=(2, 3, 7, 12, 13, 14)))
    checked = json.loads(mugraph("check", "--run", "--json", *program, TRITON_INTERPRET="1"))
    (found,) = [one for one in checked["regions"] if one["function"] == "prefill"]
    assert (found["taken"], found["calls"]) == (5, 6), found  # not of 14 rows
