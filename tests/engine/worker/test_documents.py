"""Texts that the disk does not hold, modules that misbehave, and an engine behind another command."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from mugraph.protocol import messages as m
from mugraph.protocol.settings import EngineSettings
from mugraph.protocol.values import Document

from .conftest import COMMAND, Engine, Start, document, quick

MATMUL = "import torch\n\n# mugraph: x=f16[16, 64], w=f16[64, 64]\ndef f(x, w):\n    return torch.relu(x @ w)\n"


@pytest.fixture
def engine(prepared: Engine) -> Engine:
    return prepared


def test_an_unsaved_buffer_is_what_counts(engine: Engine):
    path = engine.root / "model.py"
    path.write_text("def f(:\n")
    assert engine.ask(m.Find(engine.id(), document(path)), m.Found).errors
    buffer = document(path, MATMUL, 2)
    found = engine.ask(m.Find(engine.id(), buffer), m.Found)
    assert [region.function for region in found.regions] == ["f"]
    assert found.errors == []
    nowhere = Document("untitled:Untitled-1", str(engine.root / "Untitled-1.py"), 1, MATMUL)
    assert len(engine.ask(m.Find(engine.id(), nowhere), m.Found).regions) == 1
    missing = document(engine.root / "missing.py")
    assert "cannot be read" in engine.refused(m.Find(engine.id(), missing))


def test_code_that_cannot_be_parsed_is_never_verified(engine: Engine):
    path = engine.root / "model.py"
    path.write_text(MATMUL)
    assert engine.search(document(path)).outcome == "done"
    known = len(engine.all_of(m.RegionChanged))
    assert engine.search(document(path)).outcome == "done"
    assert len(engine.all_of(m.RegionChanged)) == known, "nothing is searched twice"
    assert engine.search(document(path), again=True).outcome == "done"
    search = engine.all_of(m.RegionChanged)[-1].region.search
    assert search is not None, "unless it is asked for"
    assert not search.from_store
    broken = document(path, MATMUL + "def g(:\n", 2)
    found = engine.ask(m.Find(engine.id(), broken), m.Found)
    assert found.regions == []
    assert "no valid Python" in found.errors[0]
    mended = engine.ask(m.Find(engine.id(), document(path, MATMUL, 3)), m.Found)
    assert [region.status for region in mended.regions] != []


def test_prints_of_any_kind_stay_off_the_protocol(start: Start):
    """The fixture fails on any stray byte."""
    engine = start()
    engine.hello()
    path = engine.root / "prints.py"
    path.write_text(
        "import os, subprocess, sys, torch\n"
        "print('printed')\n"
        "os.write(1, b'written\\n')\n"
        "sys.__stdout__.write('original\\n')\n"
        "subprocess.run(['echo', 'by a child'])\n"
        "open('/dev/stdout', 'w').write('by name\\n')\n"
        'print(\'{"type":"pong","id":1}\')\n'
        "sys.stdin.read()\n" + MATMUL
    )
    found = engine.ask(m.Find(engine.id(), document(path)), m.Found)
    assert found.errors == []
    assert len(found.regions) == 1
    assert engine.all_of(m.Pong) == []


def test_modules_that_end_the_process_or_never_end(start: Start):
    engine = start()
    engine.hello()
    for name, line, said in (
        ("leaves", "os._exit(3)", "ended"),
        ("exits", "sys.exit(3)", "cannot be imported: SystemExit"),
        ("dies", "os.kill(os.getpid(), 11)", "signal 11"),
        ("raises", "1 / 0", "ZeroDivisionError"),
        ("sleeps", "time.sleep(600)", "still running after 3 s"),
    ):
        patience = (
            EngineSettings(measure=False) if name != "sleeps" else EngineSettings(trace_timeout_s=3.0, measure=False)
        )
        engine.ask(m.Configure(engine.id(), patience), m.Configured)
        path = engine.root / f"{name}.py"
        path.write_text(f"import os, sys, time\n{line}\n{MATMUL}")
        [error] = engine.ask(m.Find(engine.id(), document(path)), m.Found).errors
        assert said in error
        assert "\n" not in error
    assert engine.ask(m.AskReport(engine.id()), m.Report).restarts == 0


def test_a_huge_file_does_not_keep_the_engine_from_answering(engine: Engine):
    text = MATMUL + "".join(f"x{number} = [{number}, {number} + 1]\n" for number in range(100_000))
    request = m.Find(engine.id(), document(engine.root / "huge.py", text))
    engine.send(request)
    slowest = 0.0
    for _ in range(40):
        began = time.monotonic()
        engine.ask(m.Ping(engine.id()), m.Pong)
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.05)
    print(f"slowest of 40 pings: {slowest * 1000:.1f} ms")
    began = time.monotonic()
    engine.send(m.Cancel(request.id))
    if not [said for said in engine.heard if isinstance(said, m.Found)]:
        engine.until(lambda said: getattr(said, "id", None) == request.id and isinstance(said, (m.Failed, m.Found)))
    print(f"cancelled after {(time.monotonic() - began) * 1000:.0f} ms")
    assert slowest < 1.0


def test_a_changed_neighbour_is_noticed(engine: Engine):
    (engine.root / "parts.py").write_text("def act(x): return x\n")
    path = engine.root / "model.py"
    path.write_text(MATMUL.replace("import torch", "from parts import act").replace("torch.relu", "act"))
    before = engine.ask(m.Find(engine.id(), document(path)), m.Found)
    (engine.root / "parts.py").write_text("def act(x): return x.relu() * 2\n")
    after = engine.ask(m.Find(engine.id(), document(path, version=2)), m.Found)
    assert len(after.regions[0].statements) > len(before.regions[0].statements)


def test_shapes_are_inserted_where_tracing_reads_them(engine: Engine):
    path = engine.root / "model.py"
    text = "import torch\n\n\nclass Block(torch.nn.Module):\n    def forward(self, x, w):\n        return x @ w\n"
    path.write_text(text)
    [region] = engine.ask(m.Find(engine.id(), document(path)), m.Found).regions
    assert region.status == "needs-shapes"
    assert region.function == "Block.forward"
    edit = engine.ask(m.InsertShapes(engine.id(), document(path), region.function), m.Edit)
    assert [(one.range.start.line, one.new_text) for one in edit.edits] == [(3, "# mugraph: x=f16[...], w=f16[...]\n")]
    shapes = {"x": "f16[16, 64]", "w": "f16[64, 64]"}
    edit = engine.ask(m.InsertShapes(engine.id(), document(path), region.function, shapes), m.Edit)
    lines = text.splitlines(keepends=True)
    lines.insert(edit.edits[0].range.start.line, edit.edits[0].new_text)
    [region] = engine.ask(m.Find(engine.id(), document(path, "".join(lines), 2)), m.Found).regions
    assert region.status == "queued"
    assert "no function nothing" in engine.refused(m.InsertShapes(engine.id(), document(path), "nothing"))


def test_an_engine_on_another_machine(start: Start, tmp_path: Path):
    """A command stands for ssh: it has a banner, another folder, and no access to the editor's files."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!/bin/sh\necho 'Welcome to gpu-box'\necho 'warning: a noisy shell' >&2\nhost=$1; shift\ncd /\nsh -c \"$*\"\n"
    )
    ssh.chmod(0o755)
    engine = start((str(ssh), "gpu-box", *COMMAND))
    engine.ask(m.Hello(engine.id(), root=str(tmp_path / "not-here"), settings=quick()), m.Ready)
    [banner] = engine.stray
    assert banner.stray
    engine.stray.clear()
    assert any("cannot be entered" in notice.message for notice in engine.all_of(m.Notice))
    there = Document("file:///c%3A/editor/model.py", "/nowhere/editor/model.py", 1, MATMUL)
    assert engine.search(there).outcome == "done"
    [region] = engine.all_of(m.RegionChanged)[-1:]
    assert region.uri == there.uri
    assert region.region.status in ("improved", "no-gain")
    edit = engine.refused(m.PrepareEdit(engine.id(), there)) if region.region.status != "improved" else ""
    assert "Traceback" not in edit
    family = engine.family()
    engine.send(m.Exit())
    assert engine.process.wait(5) == 0
    assert len(family) >= 3


def test_a_workspace_full_of_namesakes(start: Start, tmp_path: Path):
    """Files named like the libraries that the engine itself needs do not keep it from starting."""
    root = tmp_path / "workspace"
    root.mkdir()
    for name in ("queue", "psutil", "msgspec", "logging", "dataclasses"):
        (root / f"{name}.py").write_text("raise RuntimeError('hidden')\n")
    engine = start((sys.executable, "-m", "mugraph.worker"))
    assert engine.hello().problems == []
