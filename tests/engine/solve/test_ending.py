"""A search unit whose time is nearly over: the best that it has found is tested and given, rather than lost."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mugraph.events import Done, Event, FirstHit, UnitResult
from mugraph.ir.region import SearchUnit
from mugraph.options import Bounds
from mugraph.pipeline import Options, run
from mugraph.reports.text import print_report
from mugraph.search.topologies.limits import never
from mugraph.solve import search_unit, testing, unit_results
from mugraph.solve.ending import NO_END, SEARCHED, UNTESTED, Ending
from mugraph.solve.ranking import Ranked, ranked_candidates
from mugraph.solve.search_unit import solve
from mugraph.solve.telling import Place, Telling
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.store.results import FILE
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.units.search_units import single_units
from mugraph.verification.float_results import FloatResult, LoweringResult
from mugraph.verification.float_test import LATE, FloatTester
from rich.console import Console

from tests.engine.search.workloads import rmsnorm_linear
from tests.support.clock import slow_clock

T = TypeVar("T")
PLACE = Place(0, 0, 1, "norm", "norm")
TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[16, 512], w=f16[512, 1024]
def gate(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.silu(x @ w)
"""


class Exact:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class StandIn(FloatTester):
    """Finds every program right, and kernels once there were as many as it is told to reject; asked: of kernels"""

    def __init__(self, wrong: int, then: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.wrong, self.then, self.asked = wrong, then, 0

    def begin(self) -> None:
        """Nothing: no process is needed."""

    def test_lowering(self, *_: Any, **__: Any) -> LoweringResult:
        return LoweringResult(True)

    def test_kernel(self, *_: Any, **__: Any) -> FloatResult:
        self.asked += 1
        self.then()
        return FloatResult(self.asked > self.wrong, None, 1e-3, 1e-3, "stand-in")


def result_of(steps: Generator[Event, None, T], each: Callable[[Event], None] = lambda _: None) -> T:
    with slow_clock():
        while True:
            try:
                each(next(steps))
            except StopIteration as end:
                return end.value


def test_the_tests_have_their_part_of_the_seconds() -> None:
    clock = Exact()
    clock.seconds = 100.0
    ending = Ending(110.0, clock.monotonic)
    assert ending.search_s == pytest.approx(SEARCHED * 10)
    clock.seconds += SEARCHED * 10 + 0.1
    assert ending.is_near
    assert ending.search_s == 0
    assert not ending.is_over
    clock.seconds = 110.0
    assert ending.is_over


def test_without_an_end_it_is_never_near() -> None:
    assert NO_END.search_s == inf
    assert not NO_END.is_near
    assert not NO_END.is_over


def ranked(ending: Ending, each: Callable[[Event], None] = lambda _: None) -> Ranked:
    tools = Tools(TARGETS["h200"], FloatTester())  # no kernel is run
    with slow_clock():
        telling = Telling(PLACE)
        bounds = Bounds(1.0, max_kernels=1)
        return result_of(ranked_candidates(rmsnorm_linear(), telling, tools, bounds, never, ending=ending), each)


def test_near_the_end_what_is_right_so_far_is_all() -> None:
    clock = Exact()

    def late_from_the_first_hit(event: Event) -> None:
        if isinstance(event, FirstHit):
            clock.seconds = 9.0

    every, few = ranked(NO_END), ranked(Ending(10.0, clock.monotonic), late_from_the_first_hit)
    assert not every.report.out_of_time
    assert few.candidates
    assert all(verdict.passed for _, verdict in few.candidates)
    assert few.report.out_of_time, "with more time it may be another"
    topologies = [{candidate.topology for candidate, _ in one.candidates} for one in (every, few)]
    assert 1 <= len(topologies[1]) < len(topologies[0])


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> SearchUnit:
    path = tmp_path_factory.mktemp("ending") / "model.py"
    path.write_text(TEXT)
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    return unit


def solved(unit: SearchUnit, tester: StandIn, ending: Ending) -> UnitResult:
    tools = Tools(TARGETS["h100"], tester, compare_with="code")
    return result_of(solve(unit, PLACE, tools, Bounds(2.0, 1), smaller=[unit], ending=ending))


def test_a_search_that_ends_early_gives_its_best_kernel_tested(unit: SearchUnit) -> None:
    clock = Exact()
    ending = Ending(10.0, clock.monotonic)
    clock.seconds = 7.0
    tester = StandIn(wrong=0)
    found = solved(unit, tester, ending)
    assert tester.asked == 1
    assert found.solution is not None
    assert found.solution.tested
    assert found.solution.verdict.max_rel_error is not None


def test_when_it_is_over_no_other_kernel_is_tested(unit: SearchUnit) -> None:
    clock = Exact()

    def late() -> None:
        clock.seconds = 11.0

    tester = StandIn(testing.FLOAT_TRIED, late)
    found = solved(unit, tester, Ending(10.0, clock.monotonic))
    assert tester.asked == 1
    assert found.search.out_of_time, "with more time one of the others may be right"
    shown = found.solution
    assert shown is not None, "the next one is verified, and handed over"
    assert found.late
    assert found.reason is not None
    assert found.reason.startswith(f"{UNTESTED}; what was tested until then was rejected: ")
    assert sum(found.rejected.values()) == 1
    assert shown.verdict.passed
    assert shown.verdict.max_rel_error is None
    assert not shown.tested
    assert not shown.pays
    other = StandIn(testing.FLOAT_TRIED)
    assert solved(unit, other, NO_END).solution is None
    assert other.asked > 1


class Slow(StandIn):
    """Its lowerings, or its kernels, take until the time for them is over."""

    def __init__(self, clock: Exact, *, lowering: bool) -> None:
        super().__init__(wrong=0)
        self.clock, self.lowering = clock, lowering

    def test_lowering(self, *_: Any, **__: Any) -> LoweringResult:
        if not self.lowering:
            return LoweringResult(True)
        self.clock.seconds = 10.0
        return LoweringResult(None, LATE)

    def test_kernel(self, *_: Any, **__: Any) -> FloatResult:
        self.asked += 1
        self.clock.seconds = 10.0
        return FloatResult(False, LATE)


@pytest.mark.parametrize("lowering", [True, False])
def test_what_is_verified_is_shown_when_there_is_no_time_to_test_it(unit: SearchUnit, lowering: bool) -> None:
    clock = Exact()
    ending = Ending(10.0, clock.monotonic)
    clock.seconds = 7.0
    tester = Slow(clock, lowering=lowering)
    found = solved(unit, tester, ending)
    assert tester.asked == (0 if lowering else 1)
    assert found.late
    assert found.reason == UNTESTED
    assert not found.rejected, "what was not tested to the end is not wrong"
    assert found.search.out_of_time
    assert found.solution is not None
    assert found.solution.verdict.passed
    assert not found.solution.tested
    assert not found.solution.pays


def test_what_is_asked_within_an_end_is_answered_by_then() -> None:
    with FloatTester() as tester, tester.until(0.0):
        assert tester.test("", "f", rmsnorm_linear(), [], []).reason == LATE
        assert tester.pid is None, "no process was started for it"


def test_a_model_whose_kernels_were_not_tested_shows_them_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its units are solved in the process of its run; two of them are equal, and the other one is not begun."""
    asked = iter([False] + [True] * 1000)
    monkeypatch.setattr("mugraph.pipeline.processors", lambda: 1)
    monkeypatch.setattr("mugraph.solve.filetime.FileTime.is_over", property(lambda _: next(asked)))
    monkeypatch.setattr("mugraph.solve.testing.tested_at_sizes", lambda *_: FloatResult(False, LATE))
    path = tmp_path / "model.py"
    path.write_text(TEXT + TEXT.replace("gate", "other").partition("\n\n\n")[2])
    options = Options(target="h100", measure=False, budget_s=2.0, file_budget_s=100.0, compare_with="code")
    with slow_clock():
        (done,) = [event for event in run(path, None, options) if isinstance(event, Done)]
    assert len(done.result.regions) == 2
    for region in done.result.regions:
        (found,) = region.units
        assert found.late
        assert found.solution is not None
        assert not found.solution.tested
        assert region.status == "no-gain"
        assert region.plan is not None, "it is shown"
        assert UNTESTED in (region.reason or "")
        assert region.unsearched == f"1 of its 1 search units were {UNTESTED}"
    assert done.result.preview is None, "and not offered"
    print_report(done.result, Console(width=400), verbose=False)
    assert UNTESTED in capsys.readouterr().out


@pytest.mark.parametrize(("near", "times"), [(False, 1), (True, 2)])
def test_what_ended_early_is_not_for_other_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: bool, times: int
) -> None:
    """A unit that is solved in the process of its run, twice; its search is said to have had no time for all."""
    endings: list[Ending] = []

    def solve(*args: Any, ending: Ending, **named: Any) -> Generator[Event, None, UnitResult]:
        endings.append(ending)
        found = yield from search_unit.solve(*args, **named)
        return replace(found, search=replace(found.search, out_of_time=True))

    monkeypatch.setattr(unit_results, "solve", solve)
    monkeypatch.setattr(unit_results, "Ending", lambda stops_at: Ending(0.0 if near else stops_at))
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    options = Options(target="h100", measure=False, budget_s=2.0, file_budget_s=100.0)
    with Store.open(tmp_path / FILE) as store, slow_clock():
        for _ in range(2):
            assert any(isinstance(event, Done) for event in run(path, None, options, store=store))
    assert len(endings) == times
    assert [one.is_near for one in endings] == [near] * times
    assert all(one.search_s < 100 for one in endings)
