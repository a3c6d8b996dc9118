"""Times of whole models: replays by themselves, and as many in a row as there are calls in a row."""

from __future__ import annotations

import itertools

import pytest
import torch
from mugraph.checking import whole_times
from mugraph.checking.whole_times import OURS


class _Clock:
    """A device on which a replay takes 3 ms after the one before, and 2 ms more where it had nothing to do."""

    ms = 0.0
    busy = False
    replays = 0

    def replay(self) -> None:
        self.ms += 3.0 if self.busy else 5.0
        self.busy = True
        self.replays += 1


def test_replays_in_a_row_are_as_many_as_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock()

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing
            self.ms = 0.0

        def record(self) -> None:
            self.ms = clock.ms

        def synchronize(self) -> None:
            clock.busy = False

        def elapsed_time(self, other: Event) -> float:
            return other.ms - self.ms

    calls = itertools.count()
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(whole_times, "_captured", lambda call: clock)
    monkeypatch.setattr(whole_times, "_CALLED_S", 1e-4)
    refused: dict[str, str] = {}
    times = whole_times._timed({OURS: lambda: next(calls)}, refused)
    in_row = times["in_row"]
    assert isinstance(in_row, dict)
    many = in_row[OURS]
    assert many > 2
    assert not refused
    assert times["device_us"] == {OURS: pytest.approx(5000.0)}
    assert times["device_in_row_us"] == {OURS: pytest.approx(3000.0 + 2000.0 / many)}
    rounds = whole_times.ROUNDS
    assert clock.replays == rounds * (1 + many)
    assert next(calls) == 2 + rounds * many
