"""Of candidates that would not be offered, the best is verified, to be shown; the others are not."""

from __future__ import annotations

from math import inf

import pytest
from mugraph.options import Bounds
from mugraph.search.topologies.limits import never
from mugraph.solve.ranking import Ranked, ranked_candidates
from mugraph.solve.telling import Place, Telling
from mugraph.solve.tools import Tools
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester

from tests.engine.search.workloads import rmsnorm_linear
from tests.support.clock import slow_clock


def ranked(worth_us: float) -> Ranked:
    tools = Tools(TARGETS["h200"], FloatTester())  # no kernel is run
    telling = Telling(Place(0, 0, 1, "norm", "norm"))
    with slow_clock():
        steps = ranked_candidates(rmsnorm_linear(), telling, tools, Bounds(1.0, max_kernels=1), never, worth_us)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value


def topologies(found: Ranked) -> set[tuple[int, ...]]:
    return {candidate.topology for candidate, _ in found.candidates}


@pytest.fixture(scope="module")
def every() -> Ranked:
    return ranked(inf)


def test_where_none_is_worth_it_the_best_is_verified(every: Ranked) -> None:
    assert len(topologies(every)) > 1
    found = ranked(0.0)
    assert len(topologies(found)) == 1
    assert found.candidates[0][0].estimate_us == every.candidates[0][0].estimate_us
    assert found.candidates[0][1].passed


def test_those_that_are_worth_it_are_all_verified(every: Ranked) -> None:
    slowest_us = max(candidate.estimate_us for candidate, _ in every.candidates)
    assert len(topologies(ranked(slowest_us + 1))) == len(topologies(every))
