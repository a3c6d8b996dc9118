"""Kernels are measured several at a time where others share the device, and compiled while others are measured."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mugraph.sharing import VARIABLE, environment
from mugraph.tune import measure
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.process import ChildProcess
from mugraph.tune.statistics import Summary

FAKE = (sys.executable, str(Path(__file__).with_name("fake_child.py")))
INPUTS = (InputSpec((4,), (1,), "f16"),)
OTHERS = (InputSpec((8,), (1,), "f16"),)
GIB = 1 << 30


def subject(name: str, source: str = "") -> Subject:
    return Subject(name, source, "f")


class Noting(ChildProcess):
    def __init__(self, asked: list[str]) -> None:
        super().__init__(FAKE)
        self._asked = asked

    def ask(self, request: Any, timeout_s: float) -> Any:
        self._asked.append(type(request).__name__)
        return super().ask(request, timeout_s)


def measured(
    names: Sequence[str], together: int, inputs: Sequence[tuple[InputSpec, ...]] | None = None
) -> tuple[list[float | None], list[str]]:
    """Medians, None for what is refused; and what the process was asked."""
    asked: list[str] = []
    given = inputs or [INPUTS] * len(names)
    with Measurer(lambda: Noting(asked)) as measurer:
        kernels = [(subject(name), own) for name, own in zip(names, given, strict=True)]
        found = list(measurer.measure_kernels(kernels, 3, together=together))
    return [one.median_us if isinstance(one, Summary) else None for one in found], asked


def test_a_lot_is_made_ready_before_it_is_timed() -> None:
    times, asked = measured(["a_1", "b_2", "c_3"], 2)
    assert times == [1.0, 2.0, 3.0]
    assert [one for one in asked if one != "Drop"] == ["Prepare", "Prepare", "Replay", "Prepare", "Replay"]


def test_one_that_fails_leaves_the_others_of_its_lot() -> None:
    assert measured(["a_1", "bad_2", "c_3", "d_4"], 4)[0] == [1.0, None, 3.0, 4.0]


def test_the_same_name_twice_is_two_kernels() -> None:
    assert measured(["a_1", "a_1"], 2)[0] == [1.0, 1.0]


def test_kernels_of_other_inputs_are_measured_one_by_one() -> None:
    times, asked = measured(["a_1", "b_2"], 2, [INPUTS, OTHERS])
    assert times == [1.0, 2.0]
    assert [one for one in asked if one != "Drop"] == ["Prepare", "Replay"] * 2


def test_where_all_of_a_lot_are_lost_each_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Measurer.compare

    def lost(self: Measurer, subjects: Sequence[Subject], *given: Any, **named: Any) -> Any:
        found = usual(self, subjects, *given, **named)
        return dict.fromkeys(found, Refused("the process ended")) if len(subjects) > 1 else found

    monkeypatch.setattr(Measurer, "compare", lost)
    assert measured(["a_1", "b_2"], 2)[0] == [1.0, 2.0]


def test_lots_are_for_those_who_share_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        assert measurer.at_once(1) == 1
        for name, value in environment(4, tmp_path).items():
            monkeypatch.setenv(name, value)
        assert measurer.at_once(1) > 1
        assert 1 <= measurer.at_once(4 * GIB) < measurer.at_once(1)
        assert measurer.at_once(64 * GIB) == 1


def test_a_lot_takes_one_turn_to_be_made_ready_and_one_to_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[bool] = []

    @contextlib.contextmanager
    def turn(*, alone: bool, spent: object) -> Iterator[None]:
        turns.append(alone)
        yield

    monkeypatch.setattr(measure, "turn", turn)
    assert measured(["a_1", "b_2", "c_3"], 3)[0] == [1.0, 2.0, 3.0]
    assert turns == [False, True]


def test_what_is_compiled_is_known_before_the_rest_is(tmp_path: Path) -> None:
    """The second waits for a file that is written once the first is known."""
    source = str(tmp_path / "first")
    with CompilePool(lambda: ChildProcess(FAKE), workers=2) as pool:
        known = pool.in_order([(subject("a"), INPUTS), (subject("waits", source), INPUTS), (subject("bad"), INPUTS)])
        assert next(known) is None
        Path(source).touch()
        assert list(known) == [None, "no such instruction"]
