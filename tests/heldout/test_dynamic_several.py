"""Several sizes with ranges: searched once, right at all of their combinations that are tried with one kernel; the
original runs where one of them is out of its range."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from mugraph.edit.apply import apply_files
from mugraph.events import Done, FileResult
from mugraph.ir.ranges import SizeRange
from mugraph.pipeline import Options, run
from mugraph.reports.document import file_document

from tests.support.clock import FILE_S
from tests.support.forks import run_interpreted

PROGRAMS = sorted((Path(__file__).parent / "dynamic_several").glob("*.py"))
CHILD = Path(__file__).parent / "run_dynamic_child.py"
SIZES = {"crossed_of_five": 5}
"""With ranges, of programs that have not two of them."""
TRACED = {"rows", "merged", "channels_last"}
"""Run through torch.compile and torch.export as well."""


def optimized(path: Path) -> FileResult:
    for event in run(
        path, options=Options(target="h100", budget_s=1.0, file_budget_s=FILE_S, measure=False, max_kernels=1)
    ):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def text(point: dict[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in point.items())


def inside(ranges: tuple[SizeRange, ...]) -> list[str]:
    """The ends of all, in all combinations of the first two, and sizes in between."""
    names = [one.name for one in ranges]
    ends = product(*((one.least, one.largest) if at < 2 else (one.largest,) for at, one in enumerate(ranges)))
    between = [(one.middle, one.largest - 1) for one in ranges]
    return [text(dict(zip(names, sizes, strict=True))) for sizes in (*ends, *zip(*between, strict=True))]


def outside(ranges: tuple[SizeRange, ...]) -> list[str]:
    return [text({one.name: one.largest + (one is beyond) for one in ranges}) for beyond in ranges]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_one_search_serves_all_sizes(program: Path, tmp_path: Path) -> None:
    path, original = tmp_path / program.name, tmp_path / "original.py"
    for copy in (path, original):
        copy.write_bytes(program.read_bytes())
    result = optimized(path)
    (region,) = result.regions
    assert region.region.dynamic is not None, region.reason
    ranges = region.region.dynamic.ranges
    assert len(ranges) == SIZES.get(program.stem, 2)
    (document,) = json.loads(json.dumps(file_document(result)))["regions"]
    assert [document["dynamic"]["name"], *(one["name"] for one in document["dynamic"]["others"])] == [
        one.name for one in ranges
    ]
    assert region.plan is not None, region.reason
    plan = replace(region.plan, faster_for=None)
    (solved,) = [unit.solution for unit in region.units if unit.solution is not None]
    assert solved.verdict.proved_sizes.keys() == solved.verdict.dynamic_sizes.keys()
    assert len(solved.verdict.proved_sizes) >= 2
    written = apply_files(path, [plan], region.sources)
    sizes = [*inside(ranges), *outside(ranges)]
    traced = "traced" if program.stem in TRACED else "eager"
    found = json.loads(
        run_interpreted(CHILD, str(original), str(path), str(written.module), traced, *sizes).splitlines()[-1]
    )
    for size in inside(ranges):
        one = found[size]
        assert one["launches"] == [f"launch_{solved.kernel.name}"], size
        assert one["error"] <= max(3 * one["eager"], 2e-3), size
        assert one["strides"], size
    for size in outside(ranges):
        assert found[size]["launches"] == [], size
        assert found[size]["same"], size
    if program.stem in TRACED:
        assert found["compiled"] == {"graphs": 1, "operator": True, "equal": True}
        assert found["exported"] == {"operator": True, "equal": True}
    assert found["checked"]
    assert all(found["checked"])
