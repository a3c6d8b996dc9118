"""What is found in the samples: searched once in a run of the tests, for all that look at it, in whatever worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.events import FileResult
from mugraph.store import Store
from mugraph.store.results import FILE

from tests.support.clock import slow_clock
from tests.support.forks import ForkServer, forked
from tests.support.shared import made_once, shared_folder

TARGET = "h100"
BUDGET_S = 1.0
"""For each unit; it finds every kernel, but not always the best one."""

Searched = Callable[[Path], FileResult]


def cache_folder(factory: pytest.TempPathFactory) -> Path:
    """Where the store is that has what was found, for whoever searches for TARGET with BUDGET_S."""
    return shared_folder(factory, "samples")


def searching(factory: pytest.TempPathFactory, tracing: ForkServer, interpreting: ForkServer) -> Searched:
    folder = cache_folder(factory)

    def searched(path: Path) -> FileResult:
        def make() -> FileResult:
            from tests.samples.applied import found  # it imports PyTorch, which most tests do without

            with slow_clock(), forked(tracing, interpreting), Store.open(folder / FILE) as store:
                return found(path, TARGET, BUDGET_S, store)

        return made_once(folder / f"{path.stem}.pickle", make)

    return searched
