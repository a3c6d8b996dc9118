"""Whole numbers among the arguments tell calls apart, as guards do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from mugraph.ir.region import Trace
from mugraph.recording.inside.mugraph_recorder.looks import MOST_NUMBERS
from mugraph.recording.memory import Recorded, pictured, recorded, recorded_shapes, seen, shares
from mugraph.recording.regions import shared
from mugraph.recording.ways import other_ways, with_way
from mugraph.recording.withheld import withhold
from mugraph.trace.tracer import trace_file

PROGRAM = """\
import torch


def scores(x, start=0):
    y = x @ x.mT
    if start % 2:
        y = y * 0.5
    return torch.softmax(y, -1) @ x


if __name__ == "__main__":
    x = torch.ones(16, 16)
    for start in STARTS:
        scores(x, start)
"""


@pytest.fixture
def traced(
    tmp_path: Path, record: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Path, str, Trace]]:
    monkeypatch.setattr("mugraph.recording.ways.LEAST", 0.0)

    def of(starts: str) -> tuple[Path, str, Trace]:
        path, text = tmp_path / "scores.py", PROGRAM.replace("STARTS", starts)
        path.write_text(text)
        record(sys.executable, "scores.py")
        trace = trace_file(path, recorded_shapes=recorded_shapes(path, text), pictures=pictured(path, text))
        return path, text, trace

    return of


def fits(path: Path, text: str, trace: Trace) -> list[tuple[int, int]]:
    found = withhold(shared(trace, shares(path), text), text, seen(path, text))
    return [(one.fits or 0, one.of) for one in found.shares.values()]


def test_a_region_is_made_for_the_calls_with_its_number(traced: Callable[[str], tuple[Path, str, Trace]]) -> None:
    path, text, trace = traced("[0] * 5 + [7] * 3")
    kept = recorded(path)["scores"]
    assert {(tuple(one.numbers.items()), one.calls) for one in kept} == {((("start", 0),), 5), ((("start", 7),), 3)}
    [region] = trace.regions
    [guard] = [one for one in region.guards if "start" in one]
    assert fits(path, text, trace) == [(5 if guard.endswith("0") else 3, 8)]
    for way in other_ways(path, text):
        more = trace_file(path, recorded_shapes=way.recorded_shapes, pictures=way.pictures)
        trace = with_way(trace, more, seen(path, text), text)
    assert {guard for one in trace.regions for guard in one.guards if "start" in guard} == {"start == 0", "start == 7"}
    assert sorted(fits(path, text, trace)) == [(3, 8), (5, 8)]


def test_a_counter_makes_no_set_for_each_value(traced: Callable[[str], tuple[Path, str, Trace]]) -> None:
    path, text, trace = traced("range(100)")
    kept = recorded(path)["scores"]
    assert len(kept) == MOST_NUMBERS + 1
    assert [one.calls for one in kept if one.numbers == {"start": None}] == [100 - MOST_NUMBERS]
    assert all(one.picture is not None for one in kept if one.numbers == {"start": None})
    for number, of in fits(path, text, trace):
        assert number <= 1
        assert of == 100


def test_older_recordings_say_nothing_of_numbers() -> None:
    old = msgspec.to_builtins(Recorded({"x": "f32[16, 16]"}, calls=4))
    del old["numbers"]
    assert msgspec.convert(old, Recorded).numbers == {}
