"""A file's time: each unit has a first answer before any is searched on, and the best so far stays its answer.
Processes and searches are stood in for."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from mugraph.events import LEVEL, Event, SearchReport, Solution, UnitResult
from mugraph.executors.executor import CannotExecute, Executor, Lost
from mugraph.ir.names import Scope
from mugraph.ir.region import SearchUnit, Trace
from mugraph.ir.shares import Share, recorded_calls
from mugraph.options import Bounds, Options
from mugraph.solve.ending import SEARCHED
from mugraph.solve.filetime import FileTime
from mugraph.solve.first_answers import first_answers
from mugraph.solve.job import RegionJob
from mugraph.solve.pytorch import possible_gain_us
from mugraph.solve.telling import Place
from mugraph.solve.together import DIRECT, FIRST, FIRST_S, MORE, WORTH, Answer, Together
from mugraph.solve.tools import Tools
from mugraph.solve.unit_task import SearchTask, Solved, UnitTask
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.units.search_units import single_units
from mugraph.verification.float_test import FloatTester

from tests.engine.solve.machine import HERE
from tests.support.clock import Clock

T = TypeVar("T")
TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: q=f16[8, 16, 1024, 64], k=f16[8, 16, 1024, 64], v=f16[8, 16, 1024, 64], g=f16[64]
def attend(q, k, v, g):
    return F.scaled_dot_product_attention(F.rms_norm(q, (64,), g), F.rms_norm(k, (64,), g), v)


# mugraph: x=f16[16, 512], w=f16[512, 1024]
def gate(x, w):
    return F.silu(x @ w)
"""


@dataclass(frozen=True)
class Task:
    """left: of the gain, after the first search; None where that was complete. takes_s: of each search"""

    name: str
    left: float | None = None
    takes_s: float = 0.0
    depth: int = 1
    search_s: float = inf

    def run(self) -> Any:
        raise AssertionError("a worker answers for it")

    def within(self, left_s: float, stops_at: float = inf) -> Task:
        return replace(self, search_s=left_s)

    def deeper(self, first: object) -> tuple[Task, float] | None:
        return (replace(self, depth=2), self.left) if self.left is not None else None

    def better(self, first: Any, second: Any) -> Any:
        return max(first, second)


@dataclass
class Workers:
    """Does each task at once. errors: (name, depth) -> what its futures raise; never: those that are not done"""

    clock: Clock = field(default_factory=Clock)
    begun: list[Task] = field(default_factory=list[Task])
    errors: dict[tuple[str, int], Exception] = field(default_factory=dict[tuple[str, int], Exception])
    never: tuple[str, int] = "", 0
    interrupted: bool = False
    time: FileTime = field(default_factory=FileTime)

    def passes(self, seconds: float) -> None:
        with self.time.counting():
            self.clock.seconds += seconds

    def submit(self, task: Any) -> Future[Any]:
        self.begun.append(task)
        self.clock.seconds += task.takes_s
        future: Future[Any] = Future()
        place = (task.name, task.depth)
        if place in self.errors:
            future.set_exception(self.errors[place])
        elif place != self.never:
            future.set_result(f"{task.name}{task.depth}")
        return future

    def interrupt(self) -> None:
        self.interrupted = True

    @property
    def order(self) -> list[str]:
        return [f"{task.name}{task.depth}" for task in self.begun]


def made(workers: Workers, limit_s: float = 1000.0, count: int = 1) -> Together[Any]:
    workers.time = FileTime(limit_s, workers.clock.monotonic)
    return Together[Any](cast(Executor, workers), count, workers.time, rounds=True)


def end_of(steps: Generator[Event, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def never() -> bool:
    return False


def first(units: Together[Any], name: str) -> Answer:
    return end_of(units.first(name, 0, never))


def answer(units: Together[Any], name: str) -> Answer:
    return end_of(units.answer(name, 0, never))


def test_each_has_a_first_answer_before_one_is_searched_on() -> None:
    workers = Workers()
    units = made(workers)
    for name, gain_us, left in (("a", 9.0, 0.1), ("b", 5.0, 0.8), ("c", 3.0, None), ("d", 1.0, 1.0)):
        units.add(name, Task(name, left), gain_us)
    assert [first(units, name) for name in "abcd"] == ["a1", "b1", "c1", "d1"]
    assert workers.order == ["a1", "b1", "c1", "d1"], "nobody has asked for more"
    assert [first(units, name) for name in "ab"] == ["a1", "b1"], "they are there still"
    assert [answer(units, name) for name in "abcd"] == ["a2", "b2", "c1", "d2"]
    assert workers.order[4:] == ["b2", "d2", "a2"], "what has most left goes first: 4.0, 1.0, 0.9"


def test_what_many_calls_reach_is_searched_on_first() -> None:
    workers = Workers()
    units = made(workers)
    units.add("a", Task("a", 0.5), 9.0)
    units.add("b", Task("b", 0.5), 1.0, times=20)
    assert answer(units, "a") == "a2"
    assert workers.order == ["b1", "a1", "b2", "a2"]


def test_what_is_begun_later_comes_after_the_first_of_all_and_before_long_searches() -> None:
    workers = Workers()
    units = made(workers)
    units.add("a", Task("a", 0.5), 9.0)
    units.add("b", Task("b", 0.5), 1.0)
    assert first(units, "a") == "a1"
    units.add("whole", Task("whole", 0.5), 99.0, later=True)
    units.deepen()
    assert first(units, "whole") == "whole1"
    assert workers.order[:3] == ["a1", "b1", "whole1"]


def test_a_first_search_is_short_and_leaves_time_to_others() -> None:
    workers = Workers()
    units = made(workers, limit_s=12.0)
    for name in "abc":
        units.add(name, Task(name, 0.5), 1.0)
    assert first(units, "c") == "c1"
    assert [task.search_s for task in workers.begun] == pytest.approx(
        [FIRST * SEARCHED * 12 / 3, FIRST * SEARCHED * 12 / 2, FIRST_S], abs=0.01
    )


def test_what_is_left_goes_by_what_may_be_gained() -> None:
    workers = Workers()
    units = made(workers, limit_s=100.0, count=2)
    for name, gain_us in (("a", 8.0), ("b", 1.0), ("c", 1.0)):
        units.add(name, Task(name, 1.0), gain_us)
    assert first(units, "c") == "c1"
    assert [answer(units, name) for name in "ac"] == ["a2", "c2"]
    seconds = {task.name: task.search_s for task in workers.begun if task.depth == 2}
    assert seconds["a"] == pytest.approx(SEARCHED * 100, abs=0.1), "one process's, all of it"
    assert seconds["b"] == pytest.approx(SEARCHED * 100 * 2 / 10, abs=0.1)


@pytest.mark.parametrize("left", [0.0, WORTH / 2])
def test_what_has_nothing_left_to_gain_is_not_searched_on(left: float) -> None:
    workers = Workers()
    units = made(workers)
    units.add("a", Task("a", left), 9.0)
    units.add("b", Task("b", left), 9.0)
    assert [answer(units, name) for name in "ab"] == ["a1", "b1"]
    assert workers.order == ["a1", "b1"]


def test_a_second_search_that_would_be_as_short_is_left_out() -> None:
    workers = Workers()
    units = made(workers, limit_s=10.0)
    units.add("a", Task("a", 1.0, takes_s=4.0), 9.0)
    units.add("b", Task("b", 1.0, takes_s=5.0), 8.0)
    assert [answer(units, name) for name in "ab"] == ["a1", "b1"]
    assert MORE * workers.begun[0].search_s > SEARCHED * 1.0 / 2


def test_when_time_is_over_the_first_answers_are_the_answers() -> None:
    workers = Workers()
    units = made(workers, limit_s=10.0)
    for name, gain_us in (("a", 3.0), ("b", 2.0), ("c", 1.0)):
        units.add(name, Task(name, 1.0), gain_us)
    units.add("never", Task("never"), -1.0, later=True)
    assert first(units, "c") == "c1"
    workers.passes(10.0)
    assert [answer(units, name) for name in ("a", "b", "c", "never")] == ["a1", "b1", "c1", "late"]


def test_a_second_search_that_is_given_up_or_lost_leaves_the_first_answer() -> None:
    errors: dict[tuple[str, int], Exception] = {("b", 2): Lost(""), ("c", 2): CannotExecute("wrong")}
    workers = Workers(errors=errors, never=("a", 2))
    units = made(workers, limit_s=100.0, count=2)
    for name, gain_us in (("a", 3.0), ("b", 2.0), ("c", 1.0)):
        units.add(name, Task(name, 1.0), gain_us)
    assert [answer(units, name) for name in "bc"] == ["b1", "c1"]
    workers.passes(120.0)
    assert answer(units, "a") == "a1"
    assert workers.interrupted


def test_there_are_no_first_answers_where_nobody_works_on_them() -> None:
    workers = Workers()
    units = made(workers)
    units.add("a", Task("a"), 1.0, DIRECT)
    assert not units.answers_first
    assert not Together[Any](None, 1, FileTime(), rounds=True).answers_first


# ---------------------------------------------------------------------- a unit's two answers


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("first") / "model.py"
    path.write_text(TEXT)
    return trace_file(path)


@pytest.fixture(scope="module")
def task(trace: Trace) -> UnitTask:
    (unit,) = [unit for unit in single_units(trace.regions[1]) if isinstance(unit, SearchUnit)]
    return UnitTask(unit, Place(1, 0, 1, "gate", "gate"), Bounds(), TARGETS["h200"], "code")


def solved(
    task: UnitTask, us: float | None, *, tested: bool = True, library: float = 20.0, more: bool = True
) -> Solved:
    nothing = cast(Any, None)
    found = Solution(nothing, nothing, nothing, us, library, tested=tested) if us is not None else None
    return Solved(UnitResult(task.unit, found, SearchReport(out_of_time=more)), (), {}, shortened=more)


def test_what_was_searched_to_its_end_is_not_searched_on(task: UnitTask) -> None:
    assert task.deeper(solved(task, 5.0, more=False)) is None
    assert SearchTask(task).deeper(cast(Any, None)) is None


def test_a_second_search_is_for_what_is_faster_than_the_first_answer(task: UnitTask) -> None:
    possible = possible_gain_us(task.unit, task.target, "code")
    deeper = task.deeper(solved(task, 5.0, library=5.0 + possible / 4))
    assert deeper is not None
    assert deeper[0].most_us == LEVEL * 5.0
    assert deeper[1] == pytest.approx(0.75)
    for lacks in (solved(task, None), solved(task, 5.0, tested=False), solved(task, 30.0)):
        assert task.deeper(lacks) == (task, 1.0)


@pytest.mark.parametrize(
    ("one", "two", "wanted"),
    [
        ((5.0, True), (4.0, True), 4.0),
        ((5.0, True), (6.0, True), 5.0),
        ((5.0, True), (4.0, False), 5.0),
        ((5.0, True), (None, True), 5.0),
        ((5.0, False), (6.0, True), 6.0),
        ((30.0, True), (4.0, True), 4.0),
        ((5.0, False), (None, True), 5.0),
        ((None, True), (7.0, False), 7.0),
    ],
)
def test_what_may_be_offered_comes_before_what_is_only_expected_to_be_faster(
    task: UnitTask, one: tuple[float | None, bool], two: tuple[float | None, bool], wanted: float
) -> None:
    known = solved(task, one[0], tested=one[1])
    later = solved(task, two[0], tested=two[1], library=LEVEL * (one[0] or 20.0))
    found = task.better(known, later).result.solution
    assert found is not None
    assert found.estimate_us == wanted
    assert one[0] is None or found.library_us == 20.0, "what PyTorch takes, not what the first answer takes"


def test_a_search_has_no_more_seconds_than_its_share_scheduling_included(task: UnitTask) -> None:
    share = task.within(4.0, 1e9)
    assert (share.bounds.seconds, share.search_s, share.shortened) == (4.0, 4.0, True)


# ---------------------------------------------------------------------- the regions of a file


@dataclass
class Searches:
    """Finds no kernel, and says that there may be one."""

    begun: list[UnitTask] = field(default_factory=list[UnitTask])

    def submit(self, task: Any) -> Future[Any]:
        self.begun.append(task)
        future: Future[Any] = Future()
        report = SearchReport(complete=False, ended_by="time", out_of_time=True)
        result = UnitResult(task.unit, None, report, "no kernel was found", kernel=task.place.name)
        future.set_result(Solved(result, (), {}, shortened=True))
        return future


def test_every_region_is_divided_by_first_answers_before_one_is_searched_on(trace: Trace) -> None:
    tools = Tools(TARGETS["h200"], FloatTester(), file_time=FileTime(1000.0))
    searches = Searches()
    units = Together[Solved](cast(Executor, searches), 1, tools.file_time, rounds=True)
    path, names = Path(trace.path), Scope(())
    jobs = [
        RegionJob(number, region, names, HERE, tools, Options(), None, never, path, together=units)
        for number, region in enumerate(trace.regions)
    ]
    for job in jobs:
        job.begin()
    end_of(first_answers(jobs, units))
    short = [task for task in searches.begun if task.search_s <= FIRST_S]
    regions = [task.place.region for task in short]
    attends = [task.unit.program for task in short if task.place.region == 0]
    assert set(regions) == {0, 1}
    assert any(op.kind.contracts for op in attends[-1].ops), "the attention is in a unit of the further cut"
    assert not any(op.kind.contracts for op in attends[0].ops)
    assert regions.index(1) < max(at for at, number in enumerate(regions) if number == 0)
    assert searches.begun[: len(short)] == short, "long searches come after all short ones"
    before = len(searches.begun)
    results = [end_of(job.result()) for job in jobs]
    later = searches.begun[before:]
    assert all(task.search_s > FIRST_S for task in later if task.unit in [one.unit for one in short])
    assert [result.reason for result in results] == ["no kernel was found"] * 2


def test_a_region_weighs_as_many_calls_as_its_kernel_may_take() -> None:
    shares = {0: Share(0.5, 0.5, None, 40, taken=0.25), 1: Share(0.1, 0.1, None, 0)}
    assert [recorded_calls(number, shares) for number in range(3)] == [10, 1, 1]
