"""A process that solves search units for one run after the other knows in each what it has found in that one."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from math import inf
from typing import Any, cast

import pytest
from mugraph.events import Event, SearchReport, UnitResult
from mugraph.ir.region import SearchUnit
from mugraph.options import Bounds
from mugraph.solve import unit_task
from mugraph.solve.telling import Place
from mugraph.solve.tools import Tools
from mugraph.solve.unit_task import UnitTask
from mugraph.targets import TARGETS

PLACE = Place(0, 0, 1, "f", "kernel", False)


def test_runs_share_the_process_and_nothing_that_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Tools] = []
    known: list[int] = []

    def solve(unit: SearchUnit, place: Place, tools: Tools, *_: object, **__: object) -> Generator[Event, None, Any]:
        used.append(tools)
        known.append(len(tools.verdicts))
        tools.verdicts[len(used)] = cast(Any, None)
        yield from ()
        return UnitResult(unit, None, SearchReport(), None)

    monkeypatch.setattr(unit_task, "solve", solve)
    unit = cast(SearchUnit, None)
    for number in (1, 1, 2, 2, 1):
        UnitTask(unit, PLACE, Bounds(), TARGETS["h100"], "both", run_number=number).run()
    assert known == [0, 1, 0, 1, 0]
    assert len({id(tools.tester) for tools in used}) == 1


@pytest.mark.parametrize(
    ("seconds", "stops_at", "out_of_time", "shortened"),
    [
        (20.0, inf, True, False),
        (20.0, 0.0, True, True),
        (20.0, 0.0, False, False),
        (3.0, inf, True, True),
        (3.0, inf, False, False),
    ],
)
def test_what_more_time_might_change_is_not_for_other_runs(
    monkeypatch: pytest.MonkeyPatch, seconds: float, stops_at: float, out_of_time: bool, shortened: bool
) -> None:
    def solve(unit: SearchUnit, *_: object, **__: object) -> Generator[Event, None, Any]:
        yield from ()
        return UnitResult(unit, None, replace(SearchReport(), out_of_time=out_of_time), None)

    monkeypatch.setattr(unit_task, "solve", solve)
    task = UnitTask(cast(SearchUnit, None), PLACE, Bounds(10.0), TARGETS["h100"], "both")
    assert task.within(seconds, stops_at).run().shortened == shortened
