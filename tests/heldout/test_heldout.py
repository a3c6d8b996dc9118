"""Programs that nothing was made for: ordinary PyTorch, odd shapes, many idioms.

Each goes the whole way: searched, verified, written into a copy of its file, run there with and without its kernels
(in Triton's interpreter, at its own shapes), compared with the original in float64, and taken out again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done, FileResult
from mugraph.pipeline import Options, run
from mugraph.reports.document import file_document

from tests.heldout.checks import check_edit, check_kernels
from tests.support.clock import FILE_S

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
BUDGET_S = 1.0


def optimized(path: Path) -> FileResult:
    for event in run(path, options=Options(target="h100", budget_s=BUDGET_S, file_budget_s=FILE_S, measure=False)):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def test_there_are_programs_of_many_kinds() -> None:
    assert len(PROGRAMS) >= 15


LONG = {"stacked_decoder"}
"""Two layers of a decoder are in another program, too."""


@pytest.mark.parametrize(
    "program",
    [pytest.param(path, marks=[pytest.mark.more] if path.stem in LONG else []) for path in PROGRAMS],
    ids=lambda path: path.stem,
)
def test_program(program: Path, tmp_path: Path) -> None:
    path = tmp_path / program.name
    source = program.read_bytes()
    path.write_bytes(source)
    result = optimized(path)
    assert result.errors == ()
    assert result.regions
    check_statuses(result)
    check_edit(path, source, result)
    check_kernels(path, source, result)


def check_statuses(result: FileResult) -> None:
    """What is claimed was verified; what was not found has a reason."""
    for region in file_document(result)["regions"]:  # type: ignore[union-attr]
        assert isinstance(region, dict)
        function, reason = region["function"], region["reason"]
        assert region["status"] in ("improved", "no-gain"), f"{function}: {reason}"
        assert (reason is None) == (region["status"] == "improved"), function
        assert region["verification"]["passed"], f"{function}: {reason}"
        assert region["verification"]["max_rel_error"] is not None or region["status"] == "no-gain"
        assert region["search"]["first_verified_s"] is not None
        assert region["kernel_source"]
        assert region["timing"]["source"] == "estimated"
        if region["status"] == "improved":
            assert region["timing"]["speedup"] > 1
