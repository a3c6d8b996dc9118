"""Parts that are computed one by one and joined: they are one kernel, however people write it.

Each program goes the whole way, as in test_heldout.py: its kernels run in Triton's interpreter in its edited file.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done, FileResult
from mugraph.pipeline import Options, run

from tests.heldout.checks import check_edit, check_kernels
from tests.support.clock import FILE_S

FOLDER = Path(__file__).parent / "alike_parts"
KERNELS = {"heads_apart": 1, "expert_rows": 1, "frames_in_time": 1, "row_blocks": 2}


def optimized(path: Path) -> FileResult:
    options = Options(target="h100", budget_s=1.5, file_budget_s=FILE_S, measure=False, compare_with="code")
    for event in run(path, options=options):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def test_all_programs_are_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == KERNELS.keys()


@pytest.mark.parametrize("name", KERNELS)
def test_all_parts_are_in_one_kernel(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    source = (FOLDER / path.name).read_bytes()
    path.write_bytes(source)
    result = optimized(path)
    assert result.errors == ()
    (region,) = result.regions
    assert region.reason is None
    assert region.plan is not None
    assert len(region.sources) <= KERNELS[name]
    check_edit(path, source, result)
    check_kernels(path, source, result)
