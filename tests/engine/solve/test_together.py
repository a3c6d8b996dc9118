"""Search units side by side: which goes first, what is late, and whoever dies. Processes are stood in for."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import inf
from typing import Any, cast

import pytest
from mugraph.events import Event, UnitResult, Working
from mugraph.executors.executor import CannotExecute, Executor, Lost
from mugraph.solve.ending import SEARCHED
from mugraph.solve.filetime import FileTime
from mugraph.solve.together import DIRECT, Answer, Together
from mugraph.solve.unit_task import Solved, UnitTask

from tests.support.clock import Clock


class Task(str):
    """A unit's name in its place. within: as UnitTask.within"""

    left_s = stops_at = inf

    def within(self, left_s: float, stops_at: float = inf) -> Task:
        task = Task(self)
        task.left_s, task.stops_at = left_s, stops_at
        return task


@dataclass
class Workers:
    """Does each task at once. begun: the tasks, in order. errors: task -> what its futures raise, in order
    never: tasks that are not done"""

    begun: list[Task] = field(default_factory=list["Task"])
    errors: dict[str, list[Exception]] = field(default_factory=dict[str, list[Exception]])
    clock: Clock = field(default_factory=Clock)
    takes_s: float = 0.0
    interrupted: bool = False
    never: frozenset[str] = frozenset()

    def submit(self, task: Any) -> Future[Solved]:
        self.begun.append(task)
        self.clock.seconds += self.takes_s
        future: Future[Solved] = Future()
        waiting = self.errors.get(task, [])
        if task in self.never:
            pass
        elif waiting:
            future.set_exception(waiting.pop(0))
        else:
            future.set_result(Solved(cast(UnitResult, f"result of {task}"), (), {}))
        return future

    def interrupt(self) -> None:
        self.interrupted = True


def made(workers: Workers, limit_s: float = 1e9, count: int = 1) -> Together:
    return Together(cast(Executor, workers), count, FileTime(limit_s, workers.clock.monotonic))


def add(units: Together, name: str, gain_us: float, effort: float = 1.0) -> None:
    units.add(name, cast(UnitTask, Task(name)), gain_us, effort)


def asked(units: Together, name: str, *, cancelled: bool = False) -> tuple[list[Event], Answer]:
    steps: Generator[Event, None, Answer] = units.answer(name, 0, lambda: cancelled)
    events: list[Event] = []
    while True:
        try:
            events.append(next(steps))
        except StopIteration as end:
            return events, end.value


def test_what_may_gain_most_is_begun_first() -> None:
    workers = Workers()
    units = made(workers)
    for name, gain_us in (("a", 1.0), ("b", 7.0), ("c", 4.0), ("d", 7.0), ("c", 4.0)):
        add(units, name, gain_us)  # c stands for two equal units
    events, answer = asked(units, "a")
    assert workers.begun == ["c", "b", "d", "a"]
    assert isinstance(answer, Solved)
    assert str(answer.result) == "result of a"
    told = [event for event in events if isinstance(event, Working)]
    assert [event.done for event in told] == [0, 1, 2, 3]
    assert {event.of for event in told} == {4}
    assert asked(units, "b")[0] == []  # it was known


def test_what_takes_little_work_is_begun_before_what_gains_a_little_more() -> None:
    workers = Workers()
    units = made(workers)
    for name, gain_us, effort in (("a", 3.0, 1.0), ("b", 1.0, DIRECT), ("c", 6.0, 1.0), ("d", 0.5, DIRECT)):
        add(units, name, gain_us, effort)
    asked(units, "d")
    assert workers.begun == ["c", "b", "a", "d"]


def test_a_few_that_take_little_work_are_worth_no_process() -> None:
    workers = Workers()
    units = made(workers)
    for name in "abc":
        add(units, name, 1.0, DIRECT)
    assert asked(units, "a") == ([], "here")
    assert workers.begun == []
    for name in "defg":
        add(units, name, 1.0, DIRECT)
    assert isinstance(asked(units, "b")[1], Solved)


def test_a_unit_is_solved_once() -> None:
    workers = Workers()
    units = made(workers)
    for name in ("a", "b", "a"):
        add(units, name, 1.0)
    asked(units, "b")
    add(units, "a", 1.0)
    asked(units, "a")
    assert sorted(workers.begun) == ["a", "b"]


def test_one_unit_is_worth_no_process() -> None:
    workers = Workers()
    units = made(workers)
    add(units, "a", 1.0)
    assert asked(units, "a") == ([], "here")
    assert asked(units, "never heard of") == ([], "here")
    assert workers.begun == []


def test_what_was_not_begun_in_time_is_late() -> None:
    workers = Workers(takes_s=4.0)
    units = made(workers, limit_s=10.0)
    for number, name in enumerate("abcde"):
        add(units, name, -number)
    answers = {name: asked(units, name)[1] for name in "edcba"}
    assert workers.begun == ["a", "b", "c"]
    assert [name for name in "abcde" if answers[name] == "late"] == ["d", "e"]


def test_each_gets_its_share_of_the_seconds_that_are_left() -> None:
    workers = Workers(takes_s=4.0)
    units = made(workers, limit_s=10.0)
    for number, name in enumerate("abc"):
        add(units, name, -number)
    asked(units, "c")
    assert [task.left_s for task in workers.begun] == pytest.approx(
        [SEARCHED * 10 / 3, SEARCHED * 6 / 2, SEARCHED * 2], abs=0.1
    )


def test_units_side_by_side_share_the_seconds_of_both() -> None:
    workers = Workers(takes_s=4.0)
    units = made(workers, limit_s=10.0, count=2)
    for number, name in enumerate("abcd"):
        add(units, name, -number)
    asked(units, "a")
    assert [task.left_s for task in workers.begun[:2]] == pytest.approx([SEARCHED * 2 * 10 / 4] * 2, abs=0.1)


def test_what_takes_little_work_leaves_the_seconds_to_others() -> None:
    workers = Workers()
    units = made(workers, limit_s=10.0)
    add(units, "a", 9.0)
    for name in "bcdef":
        add(units, name, 0.1, DIRECT)
    asked(units, "a")
    assert workers.begun[0].left_s == pytest.approx(SEARCHED * 10 / 2, abs=0.1)


def test_the_last_unit_keeps_seconds_for_its_tests_and_knows_when_it_is_given_up() -> None:
    workers = Workers(takes_s=4.0)
    units = made(workers, limit_s=10.0, count=4)
    for number, name in enumerate("ab"):
        add(units, name, -number)
    began = workers.clock.monotonic()
    asked(units, "b")
    assert [task.left_s for task in workers.begun] == pytest.approx([SEARCHED * 10] * 2, abs=0.1)
    assert workers.begun[0].stops_at == pytest.approx(began + 10, abs=0.1)


def test_what_is_not_done_in_time_is_given_up() -> None:
    workers = Workers(takes_s=6.0, never=frozenset("b"))
    units = made(workers, limit_s=10.0, count=2)
    for number, name in enumerate("abc"):
        add(units, name, -number)
    answers = {name: asked(units, name)[1] for name in "cab"}
    assert workers.begun == ["a", "b"]
    assert workers.interrupted
    assert isinstance(answers["a"], Solved)
    assert (answers["b"], answers["c"]) == ("given up", "late")


def test_a_process_that_dies_costs_a_second_try_and_then_it_is_solved_here() -> None:
    workers = Workers(errors={"a": [Lost("")], "b": [Lost(""), Lost("")], "c": [CannotExecute("wrong")]})
    units = made(workers)
    for name in "abcd":
        add(units, name, 1.0)
    answers = [asked(units, name)[1] for name in "abcd"]
    assert [isinstance(answer, Solved) or answer for answer in answers] == [True, "here", "here", True]
    assert sorted(workers.begun) == ["a", "a", "b", "b", "c", "d"]


def test_cancelled_all_work_is_given_up() -> None:
    workers = Workers()
    units = made(workers)
    for name in "ab":
        add(units, name, 1.0)
    assert asked(units, "a", cancelled=True)[1] == "here"
    assert workers.interrupted
    assert asked(units, "b")[1] == "here"


@pytest.mark.parametrize("name", ["a", "b"])
def test_without_processes_all_is_solved_here(name: str) -> None:
    units = Together(None, 1, FileTime())
    add(units, "a", 1.0)
    add(units, "b", 1.0)
    assert asked(units, name) == ([], "here")
