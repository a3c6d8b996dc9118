"""Programs that are called with other numbers each time: a kernel takes all of these calls, and computes what PyTorch
does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mugraph.edit.apply import apply_files
from mugraph.edit.revert import revert_file
from mugraph.events import Done
from mugraph.pipeline import Options, run

from tests.support.clock import FILE_S
from tests.support.forks import run_interpreted

CHILD = Path(__file__).parent / "run_varying_child.py"
PROGRAMS = sorted((Path(__file__).parent / "varying").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_kernels_take_calls_with_other_numbers(program: Path, tmp_path: Path) -> None:
    path, original = tmp_path / program.name, tmp_path / "original.py"
    source = program.read_bytes()
    path.write_bytes(source)
    original.write_bytes(source)
    options = Options(target="h100", budget_s=1.0, file_budget_s=FILE_S, measure=False)
    result = next(event.result for event in run(path, options=options) if isinstance(event, Done))
    assert result.errors == ()
    found = [region for region in result.regions if region.plan is not None]
    plans = [region.plan for region in found if region.plan is not None]
    kernels = {name: kernel for region in found for name, kernel in region.sources.items()}
    written = apply_files(path, plans, kernels, target=result.device.target)
    said = json.loads(run_interpreted(CHILD, str(original), str(path), str(written.module)))
    assert said["taken"]
    assert said["own"]
    for call in said["own"]:
        assert call["same"], call
        assert not call["launches"], call
    for name, calls in said["taken"].items():
        assert len(calls) > 1
        for call in calls:
            assert call["launches"], f"{name} with {call['numbers']} runs the user's own code"
            assert call["error"] <= max(3 * call["eager"], 2 * call["rounding"], 1e-6), f"{name}: {call}"
    revert_file(path)
    assert path.read_bytes() == source
