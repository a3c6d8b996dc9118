"""Constants of kernels, and what is no number."""

from __future__ import annotations

import numpy as np
import pytest
from mugraph.triton_text.reals import LN_2, NAN, NEGATIVE, Real, Reals
from mugraph.verification.field import FieldArithmetic, P

LOG2E = 1 / LN_2


@pytest.fixture
def reals() -> Reals:
    return Reals(FieldArithmetic(np.random.default_rng(1), 1))


@pytest.mark.parametrize(
    ("written", "meant"), [(1.44269504, LOG2E), (0.125 * 1.44269504, 0.125 * LOG2E), (0.693147, LN_2)]
)
def test_a_logarithm_in_few_digits_is_the_logarithm(reals: Reals, written: float, meant: float) -> None:
    assert reals.constant(written, 0).p == reals.constant(meant, 0).p


@pytest.mark.parametrize("value", [0.044715, 1e-5, 1.44, 0.7071067811865476])
def test_other_constants_are_what_they_are(reals: Reals, value: float) -> None:
    assert reals.constant(value, 0).p == reals.field.constant(value, 0).p


def drawn(reals: Reals, *shape: int) -> Real:
    value = reals.field.draw(np.random.default_rng(2), shape)
    return Real(value.p[0], None if value.q is None else value.q[0])


def test_minus_infinity_is_lost_in_a_maximum_and_is_zero_in_an_exponential(reals: Reals) -> None:
    x, low = drawn(reals, 1, 4), reals.constant(float("-inf"), 1)
    assert np.array_equal(reals.maximum(low, x, propagate=False).p, x.p)
    assert not reals.exp(reals.add(low, x)).p.any()
    assert reals.add(low, x).state is not None


def test_what_has_no_value(reals: Reals) -> None:
    low, zero = reals.constant(float("-inf"), 0), reals.constant(0.0, 0)
    for found in (reals.add(low, reals.negative(low)), reals.div(zero, zero), reals.mul(low, zero, None, 0.0)):
        assert found.state is not None
        assert found.state.tolist() == [NAN]
    assert reals.mul(low, reals.constant(2.0, 0), None, 2.0).state.tolist() == [NEGATIVE]  # type: ignore[union-attr]


def test_the_largest_of_a_row_passes_over_minus_infinity(reals: Reals) -> None:
    x = drawn(reals, 1, 8)
    where = np.arange(8)[None] < 5
    hidden = reals.chosen(where, x, reals.constant(float("-inf"), 1))
    shown = Real(x.p[:, :5], None if x.q is None else x.q[:, :5])
    assert reals.amax(hidden, 1).p == reals.amax(shown, 1).p


def test_a_sum_over_what_does_not_vary_counts_it(reals: Reals) -> None:
    x = drawn(reals, 1, 1)
    assert reals.sum(x, 1, 7).p == x.p * 7 % P
