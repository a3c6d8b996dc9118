"""What `mugraph record` has seen gives the engine shapes, and the editor a comment to insert."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mugraph.protocol import messages as m
from mugraph.protocol.settings import EngineSettings

from .conftest import Engine, document

MODEL = """import torch


class Block(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = torch.nn.Linear(dim, dim)

    def forward(self, x, flag=False):
        return torch.relu(self.lin(x))


if __name__ == "__main__":
    block = Block(64)
    with torch.no_grad():
        for size in (16, 16, 8):
            block(torch.zeros(size, 64))
"""


def test_recorded_shapes_are_used_offered_and_inserted(prepared: Engine, tmp_path: Path):
    engine = prepared
    path = engine.root / "model.py"
    path.write_text(MODEL)
    [region] = engine.ask(m.Find(engine.id(), document(path)), m.Found).regions
    assert region.status == "needs-shapes"
    assert engine.ask(m.AskRecordings(engine.id(), document(path)), m.Recordings).recordings == []

    record = [sys.executable, "-m", "mugraph.cli", "record", "--", sys.executable, str(path)]
    environment = {**os.environ, "MUGRAPH_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run(record, env=environment, check=True, capture_output=True)

    [region] = engine.ask(m.Find(engine.id(), document(path)), m.Found).regions
    assert (region.status, region.function) == ("queued", "Block.forward")
    assert [input.shape for input in region.inputs if input.name == "x"] == [[16, 64]]
    recordings = engine.ask(m.AskRecordings(engine.id(), document(path)), m.Recordings).recordings
    assert [(one.arguments["x"], one.calls) for one in recordings] == [("f32[16, 64]", 2), ("f32[8, 64]", 1)]
    assert recordings[1].init == {"dim": "64"}

    asked = m.InsertShapes(engine.id(), document(path), "Block.forward", recordings[1].arguments)
    [edit] = engine.ask(asked, m.Edit).edits
    assert edit.new_text == "# mugraph: x=f32[8, 64], init(dim=64)\n"
    lines = MODEL.splitlines(keepends=True)
    lines.insert(edit.range.start.line, edit.new_text)
    commented = document(path, "".join(lines), 2)
    [region] = engine.ask(m.Find(engine.id(), commented), m.Found).regions
    assert [input.shape for input in region.inputs if input.name == "x"] == [[8, 64]], "the comment comes first"

    # Inserted again with other shapes, the comment is replaced.
    asked = m.InsertShapes(engine.id(), commented, "Block.forward", recordings[0].arguments)
    edits = engine.ask(asked, m.Edit).edits
    assert [edit.new_text for edit in edits] == ["# mugraph: x=f32[16, 64], init(dim=64)\n"]
    assert edits[0].range.end.line == edits[0].range.start.line + 1

    without = EngineSettings(measure=False, recorded=False)
    engine.ask(m.Configure(engine.id(), without), m.Configured)
    [region] = engine.ask(m.Find(engine.id(), document(path, version=3)), m.Found).regions
    assert region.status == "needs-shapes"


def test_optimize_uses_them_too(tmp_path: Path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    environment = {**os.environ, "MUGRAPH_CACHE_DIR": str(tmp_path / "cache")}

    def mugraph(*arguments: str) -> str:
        whole = [sys.executable, "-m", "mugraph.cli", *arguments]
        return subprocess.run(whole, env=environment, check=True, capture_output=True, text=True).stdout

    assert '"needs-shapes"' in mugraph("optimize", str(path), "--json", "--no-measure", "--budget", "1")
    mugraph("record", "--", sys.executable, str(path))
    found = mugraph("optimize", str(path), "--json", "--no-measure", "--budget", "1")
    assert '"needs-shapes"' not in found
    assert '"improved"' in found or '"no-gain"' in found
