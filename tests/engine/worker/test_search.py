"""From a document to its kernels, by messages alone; the edits are those of `mugraph optimize --apply`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from mugraph.protocol import messages as m
from mugraph.protocol.values import Document, TextEdit

from .conftest import Engine, document, quick

SAMPLES = Path(__file__).parents[3] / "samples"


def applied(text: str, edits: list[TextEdit]) -> str:
    """As an editor does it; our edits are of whole lines or at the text's end."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def offset(line: int, character: int) -> int:
        if line >= len(lines):
            return len(text)
        units = lines[line].encode("utf-16-le")[: 2 * character]
        return starts[line] + len(units.decode("utf-16-le"))

    for edit in reversed(edits):
        start, end = edit.range.start, edit.range.end
        text = text[: offset(start.line, start.character)] + edit.new_text + text[offset(end.line, end.character) :]
    return text


@pytest.fixture
def engine(prepared: Engine) -> Engine:
    return prepared


@pytest.fixture
def sample(engine: Engine, request: pytest.FixtureRequest) -> Document:
    path = engine.root / f"{request.param}.py"
    shutil.copy(SAMPLES / path.name, path)
    return document(path)


@pytest.mark.parametrize("sample", ["lora"], indirect=True)
def test_a_sample_from_finding_to_pictures(engine: Engine, sample: Document):
    found = engine.ask(m.Find(engine.id(), sample), m.Found)
    assert found.errors == []
    assert {region.status for region in found.regions} == {"queued"}
    assert {region.function for region in found.regions} == {"lora", "LoRALinear.forward"}
    lines = (SAMPLES / "lora.py").read_text().split("\n")
    for region in found.regions:
        assert region.function.rpartition(".")[2] in lines[region.name_range.start.line]
        assert region.inputs
        assert region.statements

    finished = engine.search(sample)
    assert (finished.outcome, finished.message) == ("done", "")
    said = [type(message).__name__ for message in engine.heard]
    for event in ("Progress", "FirstHit", "BetterHit", "RegionChanged"):
        assert event in said
    assert said.index("FirstHit") < said.index("BetterHit")
    last = {change.region.key: change.region for change in engine.all_of(m.RegionChanged)}
    assert {region.status for region in last.values()} <= {"improved", "no-gain"}
    best = next(region for region in last.values() if region.status == "improved")
    assert best.verified
    assert best.applicable
    assert best.evidence
    assert best.timing is not None
    assert best.timing.source == "estimated"
    assert "by estimate" in best.message

    for form, begin in (("text", best.kernels[0]), ("svg", "<svg"), ("overview", "<svg")):
        drawing = engine.ask(m.Draw(engine.id(), sample.uri, best.key, form), m.Drawing)  # type: ignore[arg-type]
        assert begin in drawing.text
    assert "no μGraph" in engine.refused(m.Draw(engine.id(), sample.uri, "other"))
    preview = engine.ask(m.Preview(engine.id(), sample, [best.key]), m.KernelPreview)
    assert preview.before == (SAMPLES / "lora.py").read_text()
    assert preview.after != preview.before
    assert "@triton.jit" in preview.module_text

    hits = len(engine.all_of(m.FirstHit))
    again = engine.search(Document(sample.uri, sample.path, 2))
    assert again.outcome == "done"
    assert again.seconds < 0.2, "what is known already is answered at once"
    assert len(engine.all_of(m.FirstHit)) == hits, "what is known already is not searched again"
    above = Document(sample.uri, sample.path, 3, "# one more line\n" + preview.before)
    moved = engine.ask(m.Find(engine.id(), above), m.Found)
    now = {region.key: region for region in moved.regions}
    assert now[best.key].status == "improved", "the same code, one line further down"
    assert now[best.key].range.start.line == best.range.start.line + 1

    edit = engine.ask(m.PrepareEdit(engine.id(), above, [best.key]), m.Edit)
    assert applied(above.text or "", edit.edits) == "# one more line\n" + preview.after
    front = psutil.Process(engine.pid)
    assert not any("libtorch" in one.path for one in front.memory_maps()), "it writes kernels, and imports no PyTorch"
    report = engine.ask(m.AskReport(engine.id()), m.Report)
    assert "torch.matmul" not in repr(report)
    assert report.errors == []


@pytest.mark.parametrize(
    "sample", ["rmsnorm_linear", pytest.param("qknorm_attention", marks=pytest.mark.more)], indirect=True
)
def test_edits_are_those_of_apply(engine: Engine, sample: Document, tmp_path: Path):
    path = Path(sample.path)
    text = path.read_text()
    assert engine.search(sample).outcome == "done"
    edit = engine.ask(m.PrepareEdit(engine.id(), sample), m.Edit)
    assert path.read_text() == text, "nothing is written"
    [(runtime, runtime_text), (module, module_text)] = edit.create.items()
    ours = applied(text, edit.edits)

    other = tmp_path / "other" / path.name
    other.parent.mkdir()
    other.write_text(text)
    command = [sys.executable, "-m", "mugraph.cli", "optimize", str(other), "--apply", "--no-measure"]
    command += ["--target", "h100", "--budget", f"{quick().budget_s:g}"]
    environment = {**os.environ, "MUGRAPH_CACHE_DIR": str(tmp_path / "cache")}  # the engine's: both have one search
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ours == other.read_text()
    assert (other.parent / Path(runtime).name).read_text() == runtime_text
    assert Path(module).name in {file.name for file in other.parent.iterdir()}
    assert module_text == (other.parent / Path(module).name).read_text()

    # Written, it fits; edited inside, it is stale; reverted, it is what it was.
    Path(module).write_text(module_text)
    path.write_text(ours)
    edited = Document(sample.uri, sample.path, 2)
    checks = engine.ask(m.CheckKernels(engine.id(), edited), m.KernelChecks).checks
    assert {check.state for check in checks} == {"fits"}
    regions = engine.ask(m.Find(engine.id(), edited), m.Found).regions
    assert "applied" in {region.status for region in regions}
    back = engine.ask(m.PrepareRevert(engine.id(), edited), m.Edit)
    assert applied(ours, back.edits) == text
    assert back.delete == [module]
    place = checks[0].range
    assert place is not None
    lines = ours.split("\n")
    lines[place.end.line - 1] += "  # edited"
    hand = Document(sample.uri, sample.path, 3, "\n".join(lines))
    stale = engine.ask(m.CheckKernels(engine.id(), hand), m.KernelChecks).checks
    assert "stale" in {check.state for check in stale}
    Path(module).unlink()
    gone = engine.ask(m.CheckKernels(engine.id(), edited), m.KernelChecks).checks
    assert {check.state for check in gone} == {"missing"}
