"""A clock for searches that hardly goes, so that what they find does not depend on how busy the machine is."""

from __future__ import annotations

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


class Clock:
    """Stands for the module `time`. seconds: added to what it says, for tests that let time pass."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds + time.monotonic() / SLOWER


@contextmanager
def slow_clock() -> Generator[Clock]:
    """Within it searches end by their work, not by time: they find what they would on an idle machine."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        for module in (run, spread, kernel_graphs, several, telling):
            patch.setattr(module, "time", clock)
        yield clock
