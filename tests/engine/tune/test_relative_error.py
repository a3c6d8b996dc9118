"""How far a result is from the reference, a part at a time."""

from __future__ import annotations

import math

import pytest
import torch
from mugraph.tune import timing
from mugraph.tune.timing import relative_errors


@pytest.mark.parametrize("part", [7, 1 << 20])
def test_parts_are_the_whole(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr(timing, "_PART", part)
    reference = torch.linspace(-4.0, 2.0, 60, dtype=torch.float64).reshape(5, 12)
    value = reference.clone()
    value[3, 2] += 0.5
    wrong = pytest.approx((0.5 / 4.0, 0.5 / 4.0 / math.sqrt(60)))
    assert relative_errors(value, reference) == wrong
    assert relative_errors(value.T, reference.T) == wrong
    value[4, 11] = math.nan
    assert relative_errors(value, reference) == (math.inf, math.inf)
    reference[4, 11] = math.inf
    assert relative_errors(value, reference) == wrong
    assert relative_errors(value[0], reference) == (math.inf, math.inf)


def test_nothing_is_no_error() -> None:
    assert relative_errors(torch.empty(0, 3), torch.empty(0, 3)) == (0.0, 0.0)
