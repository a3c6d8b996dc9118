"""Tuners of a space: valid proposals, none twice, the same by the same seed, and the best point in the end."""

from __future__ import annotations

from typing import cast, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.protocol.settings import TunerName
from mugraph.search.schedules.parameters import Point
from mugraph.tune.tuners.choose import cannot, tuner_of
from mugraph.tune.tuners.model_then_walk import TRIALS
from mugraph.tune.tuners.opevo import OpEvo
from mugraph.tune.tuners.tuner import Tuner

from .spaces import Product, products, run, tiles

BEST = (2, 4, 1, 2, 1)
NAMES: list[TunerName] = [cast(TunerName, name) for name in get_args(TunerName)]
every = pytest.mark.parametrize("name", NAMES)


def tuner(name: TunerName, space: Product, seed: int = 0, trials: int = 10_000) -> Tuner[Point]:
    return tuner_of(name, space, sorted(space.points(), key=space.estimate_us)[:30], trials, seed)


@every
@settings(max_examples=25, deadline=None)
@given(space=products(), seed=st.integers(0, 5), fails=st.booleans())
def test_valid_new_and_the_same_again(name: TunerName, space: Product, seed: int, fails: bool) -> None:
    def us(point: Point) -> float | None:
        return None if fails and sum(point) % 3 == 0 else space.us(point)

    told = run(tuner(name, space, seed), us)
    assert all(space.admits(point) for point, _ in told)
    keys = [space.key(point) for point, _ in told]
    assert len(set(keys)) == len(keys)
    assert told == run(tuner(name, space, seed), us)
    every_key = {space.key(point) for point in space.points()}
    if name == "mcfuser":  # which stops where it no longer gets faster
        assert len(keys) > 0 or not every_key
    elif name != "walk" or len(every_key) <= 30:  # the walk knows those that are ranked, and what lies around them
        assert set(keys) == every_key


@every
@pytest.mark.parametrize("seed", range(3))
def test_finds_the_best_of_a_smooth_space(name: TunerName, seed: int) -> None:
    space = tiles(BEST, lambda point: point[0] + point[1] < 11 and point[2] != 3)
    count = len(list(space.points()))
    trials = count if name == "random" else count // 3
    times = [us for _, us in run(tuner(name, space, seed, trials), space.us, trials) if us is not None]
    assert len(times) <= trials
    if name == "mcfuser":  # it ends early: among the best
        assert sorted(map(space.us, space.points())).index(min(times)) < count // 20
    else:
        assert min(times) == space.best_us


@every
def test_trials_are_at_most_so_many(name: TunerName) -> None:
    space = tiles(BEST)
    for trials in (1, 7, 40, 100):
        assert len(run(tuner(name, space, trials=trials), space.us, trials)) <= trials


@every
def test_all_may_fail(name: TunerName) -> None:
    space = tiles(BEST, lambda point: sum(point) < 4)
    told = run(tuner(name, space), lambda point: None)
    assert all(us is None for _, us in told)


@pytest.mark.parametrize("name", ["random", "opevo", "g-bfs", "n-a2c"])
def test_other_seeds_make_other_proposals(name: TunerName) -> None:
    space = tiles(BEST)
    found = {tuple(point for point, _ in run(tuner(name, space, seed), space.us, 60)) for seed in range(3)}
    assert len(found) == 3


def test_learning_is_worth_it() -> None:
    """On a rough space, after 120 of 560 trials, over ten seeds: what learns is ahead of what draws."""
    space = tiles(BEST, rough=0.2)

    def best(made: Tuner[Point]) -> float:
        return min(us for _, us in run(made, space.us, 120) if us is not None)

    drawn = sum(best(tuner("random", space, seed)) for seed in range(10))
    assert sum(best(OpEvo(space, seed)) for seed in range(10)) < drawn
    assert sum(best(tuner("n-a2c", space, seed)) for seed in range(10)) < drawn
    assert sum(best(tuner("boosted", space, seed, 120)) for seed in range(10)) < drawn


def test_walk_is_as_long_as_the_trials() -> None:
    space = tiles(BEST)
    assert len(run(tuner("walk", space, trials=TRIALS), space.us)) <= TRIALS
    ranked = sorted(space.points(), key=space.estimate_us)
    assert len(run(tuner_of("walk", space, ranked, 103), space.us)) == 103


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mugraph.tune.tuners.choose.installed", lambda module: False)
    monkeypatch.setattr("mugraph.tune.tuners.boosted.installed", lambda module: False)
    assert cannot("boosted") == (
        "the tuner boosted needs scikit-learn, which is not installed: pip install 'mugraph[tuners]'"
    )
    assert cannot("opevo") is None
    with pytest.raises(ModuleNotFoundError, match="scikit-learn"):
        tuner_of("boosted", tiles(BEST), [], 40)
