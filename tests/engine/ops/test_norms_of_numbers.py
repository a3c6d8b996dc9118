"""Norms of a tensor without dimensions: refused, by a sentence."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from mugraph.ops.algebra.refusals import NotLowerable

from tests.engine.ops.harness import lower_region, record


@pytest.mark.parametrize("dim", [-1, 0])
def test_a_number_is_not_normalized(dim: int) -> None:
    with pytest.raises(NotLowerable, match="the norm of a number"):
        lower_region(record(lambda x: F.normalize(x, dim=dim) + 1, {"x": torch.tensor(2.0)}))


@pytest.mark.parametrize("dim", [-1, 0])
def test_a_row_is(dim: int) -> None:
    assert lower_region(record(lambda x: F.normalize(x, dim=dim) + 1, {"x": torch.randn(6)}))
