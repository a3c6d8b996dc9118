"""Nothing is offered whose text was not run over the fields: a code generator that errs is found out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mugraph.sizes.table as table
import pytest
from mugraph.events import Done, FileResult
from mugraph.ir.kernel import KernelSource
from mugraph.pipeline import Options, run
from mugraph.reports.document import file_document
from mugraph.reports.evidence import evidence

MODEL = """\
import torch


# mugraph: x=f16[8, 256], g=f16[256], w=f16[256, 128]
def norm_linear(x, g, w):
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g) @ w
"""


def solved(path: Path) -> FileResult:
    path.write_text(MODEL)
    for event in run(path, options=Options(target="h100", budget_s=0.2, measure=False)):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def test_the_report_and_the_document_say_what_was_run(tmp_path: Path) -> None:
    result = solved(tmp_path / "model.py")
    (region,) = result.regions
    (unit,) = region.units
    assert unit.solution is not None
    text = unit.solution.verdict.text
    assert text is not None
    assert "run over the fields" in text
    assert f"the kernels' text: {text}" in evidence(unit.solution.verdict)
    (document,) = file_document(result)["regions"]  # type: ignore[misc]
    assert document["verification"]["text"] == [text]  # type: ignore[index]


def test_a_wrong_text_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = table.lower_kernels

    def wrong(*arguments: object, **named: object) -> KernelSource:
        source = original(*arguments, **named)  # type: ignore[arg-type]
        return replace(source, jit=source.jit.replace("tl.rsqrt(", "2.0 * tl.rsqrt("))

    monkeypatch.setattr(table, "lower_kernels", wrong)
    (region,) = solved(tmp_path / "model.py").regions
    (unit,) = region.units
    assert unit.solution is None
    assert any(reason.startswith("its text:") for reason in unit.rejected), unit.rejected
