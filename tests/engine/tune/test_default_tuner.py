"""Without a tuner of its own, `tune` asks for the same kernels as it did before there were tuners; with one, for what
that asks for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from mugraph.tune.tuner import Variant, tune
from mugraph.tune.tuners.tuner import Told

from .fake_kernels import PROGRAM, Problem, proposals

FORMER = Path(__file__).with_name("former_proposals.json")
"""What `tune` did before tuners were apart from it, on made-up kernels."""


@pytest.mark.parametrize("former", json.loads(FORMER.read_text()), ids=lambda one: str(one["seed"]))
def test_the_same_proposals_as_before(former: dict[str, Any]) -> None:
    seed, count, pool = former.pop("seed"), former.pop("count"), former.pop("pool")
    assert json.loads(json.dumps(proposals(Problem(seed, count), tune, pool=pool))) == former


class InOrder:
    """Asks for all variants, three at a time, some of them again."""

    def __init__(self, variants: Sequence[Variant]) -> None:
        self._left = list(variants)
        self.told: list[Told[Variant]] = []

    def ask(self) -> Sequence[Variant]:
        asked, self._left = self._left[:3], self._left[3:]
        return asked

    def tell(self, results: Sequence[Told[Variant]]) -> None:
        self.told += results


def tuned(problem: Problem, tuner: InOrder, **more: Any) -> Any:
    it = cast(Any, problem)
    return tune(PROGRAM, problem.variants, it, it, it, tuner=tuner, **more)


def test_a_tuner_is_told_every_time_and_failure() -> None:
    problem = Problem(1)
    tuner = InOrder(problem.variants)
    found = tuned(problem, tuner)
    times = {one.kernel.name: us for one, us in found.measured_us}
    assert [one for one, _ in tuner.told] == problem.variants
    assert all(us == times.get(one.kernel.name) for one, us in tuner.told)
    assert any(us is None for _, us in tuner.told)
    assert len(problem.compiled) == len(set(problem.compiled)), "one text is compiled once"


@pytest.mark.parametrize("trials", [1, 2, 3, 10])
def test_no_more_trials_than_allowed(trials: int) -> None:
    problem = Problem(2)
    tuner = InOrder(problem.variants)
    tuned(problem, tuner, trials=trials)
    assert len(problem.compiled) == trials
    assert len(tuner.told) >= trials


def test_cancelled_before_and_between() -> None:
    problem = Problem(3)
    tuner = InOrder(problem.variants)
    assert tuned(problem, tuner, cancelled=lambda: True).measured == 0
    assert problem.compiled == []
    tuner = InOrder(problem.variants)
    tuned(problem, tuner, cancelled=lambda: len(problem.asked) >= 4)
    assert len(problem.asked) <= 5
