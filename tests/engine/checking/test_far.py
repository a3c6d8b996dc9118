"""Results beside those in double precision, in tolerances."""

from __future__ import annotations

import math

import pytest
import torch
from mugraph.checking.far import Far, FromExact


def far(errors: list[float], wanted: float = 0.0) -> Far:
    found = Far()
    found.add(torch.tensor(errors) + wanted, torch.full((len(errors),), wanted), 0.1)
    return found


def test_errors_are_in_tolerances_of_what_is_wanted() -> None:
    assert far([0.1, -0.3]).largest == pytest.approx(3.0)
    assert far([0.1, -0.3]).mean == pytest.approx(math.sqrt(5.0))
    assert far([0.4], wanted=3.0).largest == pytest.approx(1.0)


def test_what_is_no_number_in_both_is_right() -> None:
    odd = torch.tensor([math.nan, math.inf, -math.inf])
    found = Far()
    found.add(odd, odd, 0.1)
    assert (found.largest, found.mean) == (0.0, 0.0)
    found.add(torch.tensor([1.0]), torch.tensor([math.nan]), 0.1)
    assert (found.largest, found.mean) == (math.inf, math.inf)


def test_whole_numbers_are_the_same_or_wrong() -> None:
    found = Far()
    found.add(torch.tensor([1, 2]), torch.tensor([1, 2]), 0.1)
    assert found.largest == 0.0
    found.add(torch.tensor([1, 2]), torch.tensor([1, 3]), 0.1)
    assert found.largest == math.inf


@pytest.mark.parametrize(
    ("ours", "right"),
    [
        ([1.0, -1.0, 2.6], True),  # the largest is another, and on the whole it is nearly the same
        ([2.0, -2.0, 2.6], False),  # on the whole further off
        ([0.0, 0.0, 3.9], False),
        ([0.0, 0.0, 7.0], False),
        ([math.nan, 0.0, 0.0], False),
    ],
)
def test_no_further_than_pytorch(ours: list[float], right: bool) -> None:
    assert FromExact(far(ours), far([1.0, 1.0, -2.2])).explains is right


def test_what_has_no_result_in_double_precision_is_not_explained() -> None:
    assert not FromExact(far([0.5]), far([0.5]), is_known=False).explains
