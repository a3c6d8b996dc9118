"""Clocks for searches that go by their work, so that what they find does not depend on how busy the machine is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from mugraph.executors import spread
from mugraph.search import run
from mugraph.search.kernel_graphs import run as kernel_graphs
from mugraph.search.kernel_graphs import several
from mugraph.solve import telling

SLOWER = 1000
FILE_S = 36_000.0
"""For a whole file: no end."""
STEP_S = 0.002
"""Of a step of a search for kernel graphs, on an idle machine. Nothing else bounds the work of all its parts."""


class Clock:
    """Stands for the module `time`. seconds: added to what it says, for tests that let time pass."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds + time.monotonic() / SLOWER


class SteppingClock:
    """Stands for the module `time` where kernel graphs are searched: it is looked at once in each step."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._steps = clock, itertools.count()

    def monotonic(self) -> float:
        return self._clock.monotonic() + next(self._steps) * STEP_S


@contextmanager
def slow_clock() -> Generator[Clock]:
    """Within it searches end by their work, not by time: they find what they would on an idle machine."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        for module in (run, spread, several, telling):
            patch.setattr(module, "time", clock)
        patch.setattr(kernel_graphs, "time", SteppingClock(clock))
        yield clock
