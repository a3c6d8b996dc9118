"""A size declared with a range: searched once, right at every size with one kernel; the original runs outside."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.edit.apply import apply_files
from mugraph.events import Done, FileResult
from mugraph.pipeline import Options, run
from mugraph.reports.document import file_document

from tests.support.clock import FILE_S
from tests.support.forks import run_interpreted

PROGRAMS = sorted((Path(__file__).parent / "dynamic").glob("*.py"))
CHILD = Path(__file__).parent / "run_dynamic_child.py"
INSIDE, OUTSIDE = (1, 7, 64), 65
TRACED = {"norm_linear", "gated_mlp"}
"""Run through torch.compile and torch.export as well."""
FASTER_FOR = {"norm_linear": ((1, 8),)}
"""As if the kernel were slower than the original at other sizes."""


def optimized(path: Path) -> FileResult:
    options = Options(target="h100", budget_s=1.0, file_budget_s=FILE_S, measure=False, max_kernels=1)
    for event in run(path, options=options):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_one_search_serves_every_size(program: Path, tmp_path: Path) -> None:
    path, original = tmp_path / program.name, tmp_path / "original.py"
    for copy in (path, original):
        copy.write_bytes(program.read_bytes())
    result = optimized(path)
    (region,) = result.regions
    (document,) = json.loads(json.dumps(file_document(result)))["regions"]
    assert document["dynamic"].items() >= {"name": "b", "least": 1, "largest": 64}.items()
    assert region.plan is not None, region.reason
    plan = replace(region.plan, faster_for=FASTER_FOR.get(program.stem))
    (solved,) = [unit.solution for unit in region.units if unit.solution is not None]
    assert len(solved.source.kernels) == 1
    for capability in (80, 90):
        compiled = compile_for(solved.source, capability)
        assert compiled.shared_bytes <= {80: 166_912, 90: 232_448}[capability]
    for axis, tested in solved.verdict.dynamic_sizes.items():
        assert tested[0] == solved.verdict.proved_sizes[axis][0] <= 2  # with a row that is joined there are two
        assert len(tested) >= 2
    assert solved.verdict.proved_sizes.keys() == solved.verdict.dynamic_sizes.keys() != set()
    written = apply_files(path, [plan], region.sources)
    sizes = [str(size) for size in (*INSIDE, OUTSIDE)]
    traced = "traced" if program.stem in TRACED else "eager"
    ran = run_interpreted(CHILD, str(original), str(path), str(written.module), traced, *sizes)
    found = json.loads(ran.splitlines()[-1])
    for size in INSIDE:
        one = found[str(size)]
        runs = plan.faster_for is None or any(first <= size <= last for first, last in plan.faster_for)
        assert one["launches"] == ([f"launch_{solved.kernel.name}"] if runs else []), size
        assert one["same"] or runs, size
        assert one["error"] <= max(3 * one["eager"], 2e-3), size
        assert one["strides"], size
    beyond = found[str(OUTSIDE)]
    assert beyond["launches"] == []
    assert beyond["same"]
    if program.stem in TRACED:
        assert found["compiled"] == {"graphs": 1, "operator": True, "equal": True}
        assert found["exported"] == {"operator": True, "equal": True}
    assert found["checked"]
    assert all(found["checked"])
