"""Search units of a file on a device: which is measured first, for how long, and what is left when the time is over.
Searches and measurements are stood in for."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, cast

import pytest
from mugraph.events import Event, SearchReport, UnitResult, Working
from mugraph.executors.executor import Executor
from mugraph.options import Bounds
from mugraph.solve import in_turn
from mugraph.solve.ending import Ending
from mugraph.solve.filetime import FileTime
from mugraph.solve.in_turn import LEAST_S, InTurn
from mugraph.solve.search_unit import Searched
from mugraph.solve.telling import Place
from mugraph.solve.together import DIRECT, Answer, Together
from mugraph.solve.tools import Tools
from mugraph.solve.unit_task import Found, SearchTask, UnitTask

from tests.engine.solve.machine import TARGET
from tests.support.clock import Clock

PLACE = Place(0, 0, 1, "f", "kernel")


@dataclass(frozen=True)
class Kernels:
    """In place of Searched. expected_gain_us: of its best kernel"""

    name: str
    expected_gain_us: float


@dataclass
class Machine:
    """expected: unit -> what its best kernel gains by estimate; none where the search has a result at once
    takes_s:  to measure one unit
    """

    monkeypatch: pytest.MonkeyPatch
    expected: dict[str, float]
    takes_s: float = 1.0
    workers: int = 2
    limit_s: float = 1e9
    wrong: frozenset[str] = frozenset()
    clock: Clock = field(default_factory=Clock)
    searched: list[str] = field(default_factory=list[str])
    measured: list[str] = field(default_factory=list[str])
    shares_s: dict[str, float] = field(default_factory=dict[str, float])
    compiled: list[str] = field(default_factory=list[str])
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(in_turn, "finished", self._finished)
        self.monkeypatch.setattr(in_turn, "Searched", Kernels)
        self.monkeypatch.setattr(in_turn, "ahead", self._ahead)
        self.monkeypatch.setattr(in_turn, "untested", lambda _, found: f"untested {found.name}")
        self.time = FileTime(self.limit_s, self.clock.monotonic)
        tools = Tools(TARGET, cast(Any, None), file_time=self.time)
        searches = Together[Found](cast(Executor, self), self.workers, self.time, ahead=self.workers)
        self.units = InTurn(searches, tools)

    def submit(self, task: SearchTask) -> Future[Found]:
        name = cast(str, task.unit.unit)
        self.searched.append(name)
        found: Any = UnitResult(cast(Any, name), None, SearchReport(), "no kernel")
        if name in self.expected:
            found = Kernels(name, self.expected[name])
        future: Future[Found] = Future()
        future.set_result(Found(found, (), {}))
        return future

    def interrupt(self) -> None:
        self.interrupted = True

    def _finished(
        self, unit: str, found: Kernels, *_: object, smaller: object, ending: Ending
    ) -> Generator[Event, None, str]:
        assert found.name == unit
        self.shares_s[unit] = ending._stops_at - self.clock.monotonic()  # pyright: ignore[reportPrivateUsage]
        self.measured.append(unit)
        self.clock.seconds += self.takes_s
        if unit in self.wrong:
            raise ValueError(unit)
        yield Working(0, f"measuring {unit}", 0, 1)
        return f"result of {unit}"

    def _ahead(self, unit: str, found: Kernels, tools: Tools, bounds: Bounds, left_s: float, *, waits: bool) -> None:
        assert (found.name, waits) == (unit, False)
        self.compiled.append(unit)

    def add(self, name: str, gain_us: float, effort: float = 1.0) -> None:
        self.units.add(name, UnitTask(cast(Any, name), PLACE, Bounds(), TARGET, "code"), gain_us, effort)

    def asked(self, name: str, *, cancelled: bool = False) -> Answer:
        steps = self.units.answer(name, 0, lambda: cancelled)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value


def result(answer: Answer) -> Any:
    assert not isinstance(answer, str), answer
    return answer.result


def test_what_is_expected_to_gain_most_is_measured_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the estimate of its kernels, not by what it may gain at most; and for all units that are the same."""
    machine = Machine(monkeypatch, {"a": 1.0, "b": 3.0, "c": 2.0, "d": -50.0})
    for name, most_us in (("a", 9.0), ("b", 8.0), ("c", 7.0), ("c", 7.0), ("d", 40.0)):
        machine.add(name, most_us)
    assert result(machine.asked("a")) == "result of a"
    assert machine.searched == ["d", "c", "a", "b"]
    assert machine.measured == ["c", "b", "d", "a"]  # of d, a part of what it may gain counts
    assert result(machine.asked("c")) == "result of c"
    assert machine.measured == ["c", "b", "d", "a"]
    assert machine.compiled == ["c", "b", "b", "d", "d", "a", "a"], "of the next one while one is measured"


def test_nothing_is_measured_where_the_search_has_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {"a": 1.0})
    machine.add("a", 2.0)
    machine.add("b", 1.0)
    assert result(machine.asked("b")).reason == "no kernel"
    assert machine.measured == []
    assert result(machine.asked("a")) == "result of a"


def test_when_the_time_is_over_what_was_measured_counts_and_the_rest_is_shown_untested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, {name: 10.0 - number for number, name in enumerate("abcdef")}, 4.0, limit_s=10.0)
    for number, name in enumerate("abcdef"):
        machine.add(name, 20.0 - number)
    answers = {name: machine.asked(name) for name in reversed("abcdef")}
    assert machine.measured == ["a", "b", "c"]
    assert [result(answers[name]) for name in "abc"] == [f"result of {name}" for name in "abc"]
    late = [answers[name] for name in "def"]
    assert all(answer == "late" or result(answer).startswith("untested") for answer in late)
    assert machine.clock.seconds <= 12.0 + 1.0


def test_each_gets_its_share_of_the_seconds_and_what_gains_more_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {"a": 16.0, "b": 1.0, "c": 1.0}, workers=4, limit_s=60.0)
    for name in "abc":
        machine.add(name, 20.0)
    machine.asked("c")
    assert machine.measured == ["a", "b", "c"]
    assert machine.shares_s["a"] == pytest.approx(60 * 4 / 6, abs=1.0)
    assert machine.shares_s["b"] == pytest.approx(59 / 2, abs=1.0)
    assert machine.shares_s["c"] == pytest.approx(58, abs=1.0)


def test_of_many_each_gets_time_for_a_few_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"u{number}" for number in range(40)]
    machine = Machine(monkeypatch, dict.fromkeys(names, 1.0), takes_s=LEAST_S, workers=4, limit_s=45.0)
    for name in names:
        machine.add(name, 2.0)
    answers = [machine.asked(name) for name in names]
    assert all(share == pytest.approx(LEAST_S, abs=0.5) for share in list(machine.shares_s.values())[:8])
    assert 20 <= len(machine.measured) <= 24
    assert len(answers) == 40
    assert machine.clock.seconds < 50


def test_one_unit_is_searched_and_measured_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {"a": 1.0})
    machine.add("a", 2.0)
    assert machine.asked("a") == "here"
    machine.add("b", 2.0, DIRECT)
    machine.add("c", 2.0, DIRECT)
    assert [machine.asked(name) for name in "bc"] == ["here"] * 2
    assert machine.asked("never heard of") == "here"
    assert machine.searched == []


def test_what_goes_wrong_is_met_again_where_the_unit_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {"a": 1.0, "b": 2.0}, wrong=frozenset("b"))
    machine.add("a", 2.0)
    machine.add("b", 3.0)
    assert result(machine.asked("a")) == "result of a"
    assert machine.asked("b") == "here"


def test_a_cancelled_run_measures_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {"a": 1.0, "b": 2.0})
    machine.add("a", 2.0)
    machine.add("b", 3.0)
    assert machine.asked("a", cancelled=True) == "here"
    assert machine.measured == []


def test_what_was_cut_short_is_not_for_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {"a": 1.0, "b": 1.0}, takes_s=40.0, limit_s=60.0)
    machine.add("a", 2.0)
    machine.add("b", 2.0)
    answer = machine.asked("a")
    assert not isinstance(answer, str)
    assert answer.shortened
    whole = Machine(monkeypatch, {"a": 1.0, "b": 1.0}, takes_s=1.0, limit_s=60.0)
    whole.add("a", 2.0)
    whole.add("b", 2.0)
    answer = whole.asked("a")
    assert not isinstance(answer, str)
    assert not answer.shortened


def test_the_gain_by_estimate_is_that_of_the_best_kernel() -> None:
    @dataclass(frozen=True)
    class Variant:
        candidate: Any

    @dataclass(frozen=True)
    class Candidate:
        estimate_us: float

    variants = [(Variant(Candidate(us)), None) for us in (7.0, 5.0, 6.0)]
    kernels = cast(Any, type("Written", (), {"variants": variants}))
    searched = Searched(cast(Any, None), cast(Any, None), kernels, library_us=12.0)
    assert searched.expected_gain_us == 7.0
    assert replace(searched, library_us=4.0).expected_gain_us == -1.0
    assert inf > searched.expected_gain_us
