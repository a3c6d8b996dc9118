"""Cross-entropy of probabilities is an operator of the algebra; of classes given by their indices it is none, and is
named with its line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.units.outside import outside

from tests.engine.ops.harness import check, randn, record

X, P = randn(7, 5), torch.softmax(randn(7, 5, seed=1), 1)
WEIGHT = randn(5, seed=2).abs()

CASES: dict[str, dict[str, Any]] = {
    "mean": {},
    "sum": {"reduction": "sum"},
    "none": {"reduction": "none"},
    "smoothed": {"label_smoothing": 0.1},
}


@pytest.mark.parametrize("name", CASES)
def test_of_probabilities(name: str) -> None:
    check(lambda x, p: F.cross_entropy(x, p, **CASES[name]), {"x": X, "p": P})
    check(lambda x, p, w: F.cross_entropy(x, p, w, **CASES[name]), {"x": X, "p": P, "w": WEIGHT})


def test_one_row_and_images() -> None:
    check(lambda x, p: F.cross_entropy(x, p), {"x": X[0], "p": P[0]})
    image = randn(2, 4, 3)
    check(lambda x, p: F.cross_entropy(x, p), {"x": image, "p": torch.softmax(randn(2, 4, 3, seed=1), 1)})


def test_of_indices() -> None:
    region = record(lambda x, t: F.cross_entropy(x, t), {"x": X, "t": torch.arange(7) % 5})
    ((name, _),) = outside(region)
    assert name == "torch.nn.functional.cross_entropy"
    assert outside(record(lambda x, p: F.cross_entropy(x, p), {"x": X, "p": P})) == ()
