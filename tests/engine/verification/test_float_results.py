"""The error that is said of a kernel: the largest of those that say something."""

from __future__ import annotations

from typing import Any

import pytest
from mugraph.verification.float_results import result_of


def answer(*errors: tuple[float, float]) -> dict[str, Any]:
    names = ("normal", "large", "small")
    rest = {"passed": True, "ulps": 1.0, "same_bits": False, "same_but_zeros": False, "reason": None}
    results = [
        {"scenario": name, "error": ours, "eager_error": eager, **rest}
        for name, (ours, eager) in zip(names, errors, strict=False)
    ]
    return {"device": "interpreter", "error": None, "results": results}


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (((1e-4, 2e-4), (3e-4, 2e-4)), (3e-4, 2e-4)),
        (((1e-4, 2e-4), (1.0, 1.0)), (1e-4, 2e-4)),  # PyTorch rounds all of its results to 0
        (((1.0, 1.0), (float("nan"), float("nan"))), (1.0, 1.0)),
        (((1e-4, 2e-4), (0.9, 1e-3)), (0.9, 1e-3)),
    ],
)
def test_of_results_without_a_right_digit_no_error_is_said(
    errors: tuple[tuple[float, float], ...], said: tuple[float, float]
) -> None:
    found = result_of(answer(*errors))
    assert (found.max_rel_error, found.eager_rel_error) == said
    assert len(found.scenarios) == len(errors)
