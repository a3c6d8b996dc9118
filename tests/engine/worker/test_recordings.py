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


WAYS = """import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(32, 32)

    def forward(self, x, mask=None):
        y = self.q(x) @ x.mT
        if mask is not None:
            y = y + mask
        return torch.softmax(y, -1)


if __name__ == "__main__":
    scores = Scores().eval()
    with torch.no_grad():
        for _ in range(40):
            scores(torch.ones(16, 32))
        for rows in (8, 16, 32, 64):
            for _ in range(8):
                scores(torch.ones(rows, 32), torch.ones(rows, rows))
"""


def test_every_way_of_calling_is_searched_after_the_first(prepared: Engine, tmp_path: Path):
    """The first has its answer before the others are traced; all are written together."""
    engine = prepared
    path = engine.root / "scores.py"
    path.write_text(WAYS)
    record = [sys.executable, "-m", "mugraph.cli", "record", "--", sys.executable, str(path)]
    environment = {**os.environ, "MUGRAPH_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run(record, env=environment, check=True, capture_output=True)

    assert engine.search(document(path)).outcome == "done"
    first, second = engine.all_of(m.Found)
    assert len(first.regions) == 1
    last = {one.region.key: one.region for one in engine.all_of(m.RegionChanged)}
    assert len(last) == len(second.regions) > 1
    assert {one.status for one in last.values()} == {"improved"}
    assert len({one.range.start for one in last.values()}) == 1
    sizes = [one.sizes for one in last.values()]
    assert "" in sizes
    assert any(sizes), "one is for a range of sizes"
    order = [said for said in engine.heard if isinstance(said, m.Found | m.RegionChanged)]
    assert order[0] is first
    assert isinstance(order[1], m.RegionChanged)
    assert order.index(second) > 1

    # asked again, nothing is traced or searched; an edit leaves what stands elsewhere as it is
    heard = len(engine.heard)
    assert engine.search(document(path)).outcome == "done"
    assert [type(said) for said in engine.heard[heard:]] == [m.Found, m.Finished]
    moved, heard = document(path, "# moved\n" + WAYS, 2), len(engine.heard)
    assert engine.search(moved).outcome == "done"
    assert not [said for said in engine.heard[heard:] if isinstance(said, m.RegionChanged)], "results are kept"

    keys = list(last)
    edit = engine.ask(m.PrepareEdit(engine.id(), moved, keys), m.Edit)
    text = "".join(one.new_text for one in edit.edits)
    assert text.count("if mugraph_kernels.") == len(keys)
    assert text.count("elif mugraph_kernels.") == len(keys) - 1
