"""Of several regions the report has a few lines each; of one that is named, and with -v, all that is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.cli import run
from mugraph.reports.evidence import evidence_of_all
from mugraph.verification.verdict import Proof, Verdict

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: scores=f32[64, 300], bias=f32[300]
def shifted(scores, bias):
    return F.silu(scores + bias) * 2.0


# mugraph: rows=f32[64, 70]
def bumps(rows):
    return torch.exp(-rows * rows) + rows
"""
KERNEL, DRAWING = "def bumps_fused_kernel(", "├─ input rows"

pytestmark = pytest.mark.usefixtures("own_cache")


def test_several_are_told_briefly_and_one_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.py"
    file.write_text(TEXT)

    def said(*more: str, name: str = "") -> str:
        of = ["optimize", f"{file}{name}", "--target", "h200", "--no-measure", "--compare-with", "code"]
        assert run([*of, *more]) == 0
        return capsys.readouterr().out

    brief = said()
    assert KERNEL not in brief
    assert DRAWING not in brief
    assert "kernels   1 generated: bumps_fused" in brief
    assert brief.count("verified  equal in ") == brief.count("error against float64") == 2
    assert f"mugraph optimize {file}:NAME, or -v" in brief
    for whole in (said("-v"), said(name=":bumps")):
        assert KERNEL in whole
        assert DRAWING in whole
        assert ":NAME, or -v" not in whole


def test_what_was_not_shown_of_some_parts_is_counted() -> None:
    proof = Proof(True, {"m": 4}, "by hand")
    sizes = ({"m": 4}, {"m": 10})
    full = Verdict(True, None, True, 8, sizes, proof=proof, text="all blocks", max_rel_error=1e-4, eager_rel_error=2e-4)
    bare = Verdict(True, None, True, 32, sizes)
    said = " ".join(evidence_of_all([full, bare, full]))
    assert "each of 3 parts equal in at least 8 random tests" in said
    assert "2 of 3 proved for all real inputs" in said
    assert "the kernels' text of 2 of 3 run over the fields" in said
    assert "no floating-point test was run of 1 of 3" in said
    assert "the largest error against float64 1.0e-04" in said
    (alone, untested) = evidence_of_all([bare])
    assert "not proved for all real inputs" in alone
    assert "was not run over the fields" in alone
    assert untested == "no floating-point test was run"
    assert evidence_of_all([full, Verdict(False, "it differs", True, 8, sizes)]) == ["NOT VERIFIED: it differs"]
