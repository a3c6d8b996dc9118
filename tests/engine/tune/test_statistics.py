from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mugraph.tune.rotation import (
    ALONE_TIMES,
    CACHE_TIMES,
    ENOUGH_US,
    LEAST_LAUNCHES,
    MOST_CALLS,
    MOST_COPIES,
    calls_of,
    rotation,
    shortened,
)
from mugraph.tune.statistics import DRIFT, Summary, noise_us, speedup, summarise


def test_median_ignores_the_tail():
    assert summarise([10.0, 10.0, 10.0, 10.0, 500.0]).median_us == 10.0


def test_error_of_the_median_is_about_right():
    """Against the spread of many medians of normally distributed samples."""
    rng = random.Random(0)
    medians = [summarise([rng.gauss(100, 5) for _ in range(25)]) for _ in range(400)]
    centre = sum(s.median_us for s in medians) / len(medians)
    spread = (sum((s.median_us - centre) ** 2 for s in medians) / len(medians)) ** 0.5
    claimed = sum(s.error_us for s in medians) / len(medians)
    assert 0.8 < claimed / spread < 1.25


def test_nothing_to_summarise():
    with pytest.raises(ValueError, match="no samples"):
        summarise([])


def test_improvement_within_the_noise_is_none():
    steady = Summary(10.0, 0.0, 40)
    assert speedup(steady, Summary(10.0 - 10.0 * DRIFT, 0.0, 40)) == 1.0
    assert speedup(steady, Summary(9.0, 0.0, 40)) == pytest.approx(10 / 9)
    assert speedup(steady, Summary(9.0, 0.5, 40)) == 1.0
    assert speedup(steady, Summary(12.0, 0.0, 40)) == 1.0


@given(st.floats(0.1, 1e5), st.floats(0, 100), st.floats(0.1, 1e5), st.floats(0, 100))
def test_noise_is_symmetric_and_speedup_one_sided(a: float, da: float, b: float, db: float):
    first, second = Summary(a, da, 20), Summary(b, db, 20)
    assert noise_us(first, second) == noise_us(second, first) >= 3 * max(da, db)
    assert min(speedup(first, second), speedup(second, first)) == 1.0


@given(st.integers(1, 1 << 34), st.sampled_from([40 << 20, 50 << 20, 60 << 20]))
def test_rotation_is_always_cold(set_bytes: int, l2: int):
    plan = rotation(set_bytes, l2)
    assert (1 if set_bytes >= ALONE_TIMES * l2 else 2) <= plan.copies <= MOST_COPIES
    assert plan.launches >= min(LEAST_LAUNCHES, plan.copies)
    if plan.flush:  # each copy is touched once after the cache was overwritten
        assert plan.launches == plan.copies
    else:  # what lies between two uses of a copy fills the cache several times
        assert (plan.copies - 1) * set_bytes + set_bytes >= CACHE_TIMES * l2 - set_bytes
        assert plan.copies * set_bytes > CACHE_TIMES * l2 or plan.copies <= 2
        assert plan.launches % plan.copies == 0
        assert plan.launches >= LEAST_LAUNCHES


@given(st.integers(1, 1 << 34), st.floats(0.1, 1e6))
def test_a_sample_is_long_enough_and_no_longer(set_bytes: int, us: float):
    plan = rotation(set_bytes, 50 << 20)
    less = shortened(plan, us)
    assert less.copies == plan.copies <= less.launches <= plan.launches
    assert less.launches % less.copies == 0
    assert less == plan or less.launches * us >= ENOUGH_US
    assert 2 <= calls_of(us) <= MOST_CALLS
    assert calls_of(us) == MOST_CALLS or calls_of(us) * us >= ENOUGH_US
