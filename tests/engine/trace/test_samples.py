"""Every region of every sample, run by its recorded calls on real tensors, equals the original."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.ir.region import Trace
from mugraph.research.reach import main
from mugraph.trace.regions.check import same
from mugraph.trace.tracer import trace_file

SAMPLES = Path(__file__).parents[3] / "samples"
REACH = sorted((SAMPLES / "reach").glob("*.py"))
WITHOUT_REGIONS = {"autocast"}


@pytest.mark.parametrize("path", REACH, ids=lambda path: path.stem)
def test_programs_of_every_kind(path: Path) -> None:
    found = trace_file(path, check=True)
    assert found.errors == ()
    searched = [region for region in found.regions if region.status is None]
    assert bool(searched) is (path.stem not in WITHOUT_REGIONS)
    for region in searched:
        assert covered(path.read_text(encoding="utf-8"), region.range) == region.text


def covered(text: str, where: object) -> str:
    """The text of a range, cut in UTF-16 as an editor does."""
    start, end = where.start, where.end  # type: ignore[attr-defined]
    lines = [line.encode("utf-16-le") for line in text.splitlines(keepends=True)]
    first, last = lines[start.line][2 * start.character :], lines[end.line][: 2 * end.character]
    if start.line == end.line:
        return lines[start.line][2 * start.character : 2 * end.character].decode("utf-16-le")
    return b"".join([first, *lines[start.line + 1 : end.line], last]).decode("utf-16-le")


def test_a_llama_layer_is_one_region() -> None:
    found = [region for region in trace_file(SAMPLES / "llama_block.py").regions if region.status is None]
    assert [region.function for region in found] == ["LlamaBlock.forward"]
    assert len(found[0].calls) > 40
    assert len(found[0].live_ins) == 12


def test_reach_reports_and_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(SAMPLES / "reach" / "addmm.py"), str(SAMPLES / "reach" / "library_barrier.py")]) == 0
    out = capsys.readouterr().out
    assert "2 files, 3 regions" in out
    assert "× stores to an attribute or item" in out
    assert "all 3 regions equal the original" in out


def test_reach_fails_where_a_file_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("# mugraph: x=f32[2]\ndef f(x):\n    raise ValueError('no')\n")
    assert main([str(tmp_path)]) == 1
    assert "f raises ValueError: no" in capsys.readouterr().err


def test_the_check_itself_sees_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder that loses a call's argument is caught: the check in this process, on a tampered region."""
    import mugraph.trace.file_trace as session
    from mugraph.trace.request import Request

    kept = session.Partition.kept

    def tampered(self: session.Partition) -> object:
        found = kept(self)
        if not found:  # nothing was traced yet
            return found
        region = found[0].region
        calls = tuple(replace(call, kwargs={"dim": 0}) if "dim" in call.kwargs else call for call in region.calls)
        return (replace(found[0], region=replace(region, calls=calls, guards=("x is None",))),)

    monkeypatch.setattr(session.Partition, "kept", tampered)
    path = tmp_path / "program.py"
    path.write_text("import torch\n# mugraph: x=f32[4, 4]\ndef f(x):\n    return torch.softmax(x @ x, dim=-1)\n")
    found: Trace = session.trace_request(Request(str(path), check=True))
    assert any("differs when computed by the region's calls" in error for error in found.errors)
    assert any("the guard x is None does not hold" in error for error in found.errors)


def test_same_is_strict_about_shape_and_dtype() -> None:
    import torch

    one = torch.ones(3)
    assert same(one, one.clone())
    assert not same(one, one.to(torch.float64))
    assert not same(one, one[None])
    assert not same(one, one * 1.001)
