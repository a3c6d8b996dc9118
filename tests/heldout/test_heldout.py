"""Programs that nothing was made for: ordinary PyTorch, odd shapes, many idioms.

Each goes the whole way: searched, verified, written into a copy of its file, run there with and without its kernels
(in Triton's interpreter, at its own shapes), compared with the original in float64, and taken out again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mugraph.edit.apply import apply_files
from mugraph.edit.revert import revert_file
from mugraph.events import Done, FileResult
from mugraph.pipeline import Options, improved, run
from mugraph.reports.document import file_document

from tests.support.forks import run_interpreted

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
CHILD = Path(__file__).parent / "run_child.py"
BUDGET_S = 1.0
WITHOUT_KERNEL = {
    "rbf_features": "is no softmax",
}
"""Regions for which no kernel is found today, and what the reason says."""
SLACK = 2.0
"""Roundings in its type that a kernel may add to the original's: PyTorch's attention on a CPU keeps more in float32."""
SMALLEST = 1e-6
"""An error that is rounding in any order of float32 additions."""


def optimized(path: Path) -> FileResult:
    for event in run(path, options=Options(target="h100", budget_s=BUDGET_S, measure=False)):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def test_there_are_programs_of_many_kinds() -> None:
    assert len(PROGRAMS) >= 15


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
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
        if function in WITHOUT_KERNEL:
            assert WITHOUT_KERNEL[function] in reason
            continue
        assert region["verification"]["passed"], f"{function}: {reason}"
        assert region["verification"]["max_rel_error"] is not None
        assert region["search"]["first_verified_s"] is not None
        assert region["kernel_source"]
        assert region["timing"]["source"] == "estimated"
        if region["status"] == "improved":
            assert region["timing"]["speedup"] > 1


def check_edit(path: Path, source: bytes, result: FileResult) -> None:
    """What a user gets: the improved regions written, and taken out again to the byte."""
    plans, sources, speeds = improved(result.regions)
    if not plans:
        return
    written = apply_files(path, plans, sources, target=result.device.target, speeds=speeds)
    assert path.read_bytes() != source
    reverted = revert_file(path)
    assert reverted.regions == len(plans)
    assert path.read_bytes() == source
    assert not written.module.exists()


def check_kernels(path: Path, source: bytes, result: FileResult) -> None:
    """Every kernel found, also those that are not expected to be faster, in its place in the program."""
    found = [region for region in result.regions if region.plan is not None]
    if not found:
        return
    plans = [region.plan for region in found if region.plan is not None]
    sources = {name: kernel for region in found for name, kernel in region.sources.items()}
    original = path.with_name("original.py")
    original.write_bytes(source)
    written = apply_files(path, plans, sources, target=result.device.target)
    launched: set[str] = set()
    for name, ran in child(original, path, written.module).items():
        assert ran["same"], f"{name}: without its kernel it is not the original"
        assert ran["shape"], name
        assert ran["strides"], name
        allowed = max(3 * ran["eager"], SLACK * ran["rounding"], SMALLEST)
        assert ran["error"] <= allowed, f"{name}: {ran}"
        launched.update(ran["launches"])
    kernels = {f"launch_{kernel.name}" for plan in plans for kernel in plan.mugraph.kernels if kernel.name in sources}
    assert launched == kernels
    revert_file(path)
    assert path.read_bytes() == source


def child(original: Path, edited: Path, module: Path) -> dict[str, Any]:
    return json.loads(run_interpreted(CHILD, str(original), str(edited), str(module)))
