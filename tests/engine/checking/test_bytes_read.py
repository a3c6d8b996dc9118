"""What a call of a model reads at least."""

from __future__ import annotations

import pytest
import torch
from mugraph.checking.bytes_read import bytes_read
from torch import nn


class _Model(nn.Module):
    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 8)
        self.head = nn.Linear(8, 100, bias=False)
        if tied:
            self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(8))


@pytest.mark.parametrize("tied", [True, False])
def test_a_table_counts_where_another_layer_reads_it(tied: bool) -> None:
    assert bytes_read(_Model(tied), []) == 4 * (800 + 8)


def test_views_of_one_tensor_count_once() -> None:
    cache = torch.zeros(2, 4, dtype=torch.float16)
    inputs = [cache[0], (cache[1], torch.zeros(3, dtype=torch.int64)), 5]
    assert bytes_read(nn.Linear(2, 2), inputs) == 4 * (4 + 2) + 2 * 8 + 8 * 3
