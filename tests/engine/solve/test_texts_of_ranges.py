"""The text of a range's kernels is checked once, with that of kernels for small sizes; alone where that is wrong, and
where it is wrong alone as well, other kernels come next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mugraph.events import Done, Solution, UnitResult
from mugraph.ir.kernel import KernelSource
from mugraph.pipeline import Options, run_trace
from mugraph.sizes.proved import varying_of
from mugraph.solve import bordering
from mugraph.trace.tracer import trace_file
from mugraph.triton_text.ranges.check import check_ranges
from mugraph.tune.device import detect, resolve
from mugraph.verification.verdict import Verdict

from tests.engine.sizes.decoding import DECODE

WRONG = Verdict(False, "it is said to be wrong")


def wrong(*_: object, whole: bool = False) -> Verdict:
    return WRONG


def not_right(*_: object) -> bool:
    return False


def results(folder: Path) -> Sequence[UnitResult]:
    path = folder / "code.py"
    path.write_text(DECODE.format(sizes="n=1..8192", keys="n"))
    device = detect()
    options = Options(target="h200", budget_s=4.0, measure=False)
    events = run_trace(trace_file(path), device, resolve("h200", device), options, None)
    (one,) = next(event.result for event in events if isinstance(event, Done)).regions
    return one.units


def found(folder: Path) -> UnitResult:
    (unit,) = results(folder)
    return unit


def solution_of(unit: UnitResult) -> Solution:
    assert unit.solution is not None, unit.reason
    assert unit.solution.tested
    return unit.solution


def test_it_is_checked_with_that_of_others_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def alone(*given: object) -> Verdict:
        asked.append(given)
        return WRONG

    monkeypatch.setattr(bordering, "text_checked", alone)
    solution = solution_of(unit := found(tmp_path))
    assert solution.source.smaller
    assert not asked
    (axis,) = unit.unit.program.least
    assert solution.verdict.proved_sizes == {axis: (1, 8192)}
    assert solution.verdict.text
    assert "smaller sizes" in solution.verdict.text
    verdict = check_ranges(unit.unit.program, solution.source, varying_of(unit.unit.program))
    assert verdict.passed, verdict.reason


def test_without_others_it_is_checked_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bordering, "others_checked", wrong)
    solution = solution_of(unit := found(tmp_path))
    assert not solution.source.smaller
    assert solution.verdict.proved_sizes
    assert solution.verdict.text
    assert any("choice by size" in why for why in unit.rejected)


def test_where_it_is_wrong_other_kernels_come_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[KernelSource] = []
    whole = bordering.text_checked

    def second(program: Any, source: KernelSource, kernels: Any) -> Verdict:
        asked.append(source)
        return WRONG if len(asked) == 1 else whole(program, source, kernels)

    monkeypatch.setattr(bordering, "others_checked", wrong)
    monkeypatch.setattr(bordering, "_is_right_alone", not_right)
    monkeypatch.setattr(bordering, "text_checked", second)
    solution = solution_of(unit := found(tmp_path))
    assert len(asked) == 2
    assert solution.source == asked[1] != asked[0]
    assert solution.verdict.proved_sizes
    assert any(why.startswith("its text: it is said") for why in unit.rejected)


def test_where_all_are_wrong_none_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def alone(*given: object) -> Verdict:
        asked.append(given)
        return WRONG

    monkeypatch.setattr(bordering, "others_checked", wrong)
    monkeypatch.setattr(bordering, "_is_right_alone", not_right)
    monkeypatch.setattr(bordering, "text_checked", alone)
    found = results(tmp_path)
    assert asked
    # The region is divided otherwise, which other processes look at, where there is time left for it.
    assert len(found) > 1 or found[0].solution is None
