"""How much of the run functions take: measured by a clock that the test moves, told everywhere, and largest first."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, cast

import pytest
import torch
from mugraph.ir.region import Position, Range, Region, Trace
from mugraph.ir.shares import Share, largest_first, share_words
from mugraph.recording import memory
from mugraph.recording.inside.mugraph_recorder import clock as clock_module
from mugraph.recording.inside.mugraph_recorder.clock import Clock, Time
from mugraph.recording.memory import Recorded, RecordedFunction, Recording, complaint, keep, recorded, shares
from mugraph.recording.regions import shared


class Program:
    """Calls of functions, by a clock that only they move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.clock = Clock(lambda: None, lambda: self.now)

    def timed(self, slot: int, of: Time, weight: int = 1, on_device: bool = False) -> Callable[..., None]:
        """A function of its own code, for the clock to know it by."""
        space: dict[str, Any] = {"clock": self.clock, "frame": _frame, "of": of, "weight": weight}
        exec(
            f"def f{slot}(work):\n"
            f"    clock.begin({slot}, frame(), of, weight, {on_device})\n"
            "    try:\n        work()\n"
            f"    finally:\n        if clock.open[-1] == {slot}: clock.end()\n",
            space,
        )
        return space[f"f{slot}"]

    def passes(self, seconds: float) -> Callable[[], None]:
        def work() -> None:
            self.now += seconds

        return work


def _frame() -> FrameType:
    import sys

    return sys._getframe(1)  # pyright: ignore[reportPrivateUsage]


def test_time_of_a_function_and_of_what_it_calls():
    program = Program()
    outer, inner = Time(), Time()
    f, g = program.timed(0, outer), program.timed(1, inner)

    def work() -> None:
        program.passes(1)()
        g(program.passes(2))
        program.clock.apart(program.passes(100))  # the recorder's own
        g(program.passes(2))

    for _ in range(3):
        f(work)
    assert (outer.total, outer.own, inner.total) == (15, 3, 12)
    assert program.clock.run == 15
    assert program.clock.open == [-1]


def test_a_call_that_is_looked_at_stands_for_others_and_a_first_one_for_none():
    program = Program()
    of = Time()
    program.timed(0, of)(program.passes(50))  # sets much up
    f = program.timed(0, of, weight=8)
    for _ in range(4):
        f(program.passes(1))
    assert of.total == 4 * 8 + 1
    assert program.clock.run == 5, "nor does the run have what only the first one took"


def test_a_first_call_that_took_less_counts_as_what_it_took():
    """Else the parts of a run would be more than the run."""
    program = Program()
    f, g = Time(), Time()
    for slot, of in enumerate((f, g)):
        for seconds in (2, 6):
            program.timed(slot, of)(program.passes(seconds))
    assert (f.total, g.total, program.clock.run) == (8, 8, 16)
    assert f.own == 8


def test_recursion_and_exceptions():
    program = Program()
    of = Time()
    f = program.timed(0, of)
    f(lambda: f(lambda: f(program.passes(3))))
    assert of.total == 3

    def fails() -> None:
        program.passes(2)()
        raise KeyError

    with pytest.raises(KeyError):
        f(fails)
    assert program.clock.open == [-1]


def test_the_device_is_timed_by_events_and_never_waited_for(monkeypatch: pytest.MonkeyPatch):
    recorded_at: list[Any] = []

    class Event:
        """Passed by the device only once the test says so."""

        passed = False

        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            recorded_at.append(self)

        def query(self) -> bool:
            return Event.passed

        def elapsed_time(self, other: object) -> float:
            return 250.0  # milliseconds

    def no() -> bool:
        return False

    cuda = SimpleNamespace(Event=Event, is_available=lambda: True, is_current_stream_capturing=no)
    monkeypatch.setitem(clock_module.sys.modules, "torch", SimpleNamespace(cuda=cuda))
    program = Program()
    of = Time()
    f = program.timed(0, of, weight=2, on_device=True)
    for _ in range(3):
        f(program.passes(1))
    program.clock.read()
    assert (of.device, of.device_calls, len(recorded_at)) == (0, 0, 6)
    Event.passed = True
    program.clock.read()
    assert (of.device, of.device_calls) == (1.5, 6)


@pytest.mark.gpu
def test_time_on_a_device():
    program = Program()
    of = Time()
    x = torch.zeros(64, 64, device="cuda")
    program.timed(0, of, on_device=True)(lambda: x @ x)
    torch.cuda.synchronize()
    program.clock.read()
    assert of.device_calls == 1
    assert of.device > 0


def test_what_a_gain_is_worth_overall():
    share = Share(0.31, 0.1, None, 12, whole=True)
    assert share_words(share, 1.6, "1.60x here") == "31 % of the run; 1.60x here is 1.13x overall"
    assert share_words(share, None) == "31 % of the run"
    assert "at most 1.13x" in share_words(Share(0.31, 0.1, None, 12), 1.6)
    assert share_words(Share(0.9, 0.1, 0.31, 12), 1.6).startswith("31 %"), "of the device, where it was timed"
    assert share_words(Share(0.002, 0, None, 1), None) == "less than 1 % of the run"
    assert Share(1.0, 1.0, None, 1).overall(2.0) == 2.0
    assert largest_first(range(4), {2: share, 3: Share(0.5, 0, None, 1)}) == [3, 2, 0, 1]


def test_calls_that_were_not_looked_at_are_said() -> None:
    few = Share(0.31, 0.1, None, 288, fits=12, of=36, others="x is None (24)")
    assert few.fitting_words.startswith("made for 12 of the 36 recorded calls that were looked at, of 288; in others x")
    all_of = Share(0.31, 0.1, None, 36, fits=12, of=36, others="x is None (24)")
    assert all_of.fitting_words == "made for 12 of 36 recorded calls; in others x is None (24)"


def test_regions_have_the_shares_of_their_functions():
    text = 'def f(x):\n    """doc"""\n    y = x @ x\n    return y\n\ndef g(x):\n    x = x + 1\n    return x @ x\n'

    def region(function: str, first: int, last: int) -> Region:
        return Region(function, Range(Position(first, 4), Position(last, 12)), "statements", "")

    trace = Trace("m.py", (region("f", 2, 2), region("g", 7, 7), region("h", 8, 8)))
    shares = {
        "f": Share(0.25, 0.25, None, 3),
        "g": Share(0.5, 0.125, None, 3),
        "M.forward": Share(0.375, 0.25, None, 3),
    }
    found = shared(trace, shares, text).shares
    assert {number: (share.part, share.whole) for number, share in found.items()} == {
        0: (0.25, True),
        1: (0.125, False),
    }
    ran = replace(trace.regions[1], ran=cast(Any, {"M": None}))
    found = shared(replace(trace, regions=(ran,)), shares, text).shares
    assert found[0].part == 0.375, "its own and that of the module that it runs, not what else the function calls"


def test_other_formats_and_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Recordings of the first format are read; of a later one, and of what is no recording, there is one sentence."""
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "m.py"
    text = "def f(x): return x\n"
    one = Recorded({"x": "f16[3]"}, calls=2, seconds=1.0)
    keep(path, Recording(str(path), {"f": RecordedFunction([one], Share(0.5, 0.5, None, 2))}))
    [file] = (tmp_path / "cache" / "recordings").iterdir()
    assert complaint(path) is None
    assert shares(path, text)["f"].total == 0.5
    old = {"path": str(path), "format": 1, "functions": {"f": [{"arguments": {"x": "f16[4]"}, "calls": 3}]}}
    file.write_text(json.dumps(old))
    assert recorded(path, text)["f"][0].arguments == {"x": "f16[4]"}
    assert (shares(path, text), memory.pictured(path, text), complaint(path)) == ({}, {}, None)
    for damaged in ('{"format": 99}', '{"format": 2, "path": 3', "", "[]", json.dumps({**old, "format": 2})):
        file.write_text(damaged)
        said = complaint(path)
        assert said is not None
        assert said.endswith("record it again with: mugraph record -- COMMAND")
        assert "\n" not in said
        assert recorded(path, text) == {}
    keep(path, Recording(str(path), {"f": RecordedFunction([one])}))
    assert recorded(path, text)["f"] == [one]
