"""Whatever a variance is written as, its program has one that parts of a row can be cut at."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.search.direct import as_block
from mugraph.search.schedules.moments import moments_cuts
from torch import Tensor

from tests.engine.ops.harness import check, randn

IMAGE = randn(2, 6, 8, 4)
EPS = 1e-5


def by_hand(x: Tensor) -> Tensor:
    mean = x.mean(dim=(2, 3), keepdim=True)
    return (x - mean) / torch.sqrt(((x - mean) ** 2).mean(dim=(2, 3), keepdim=True) + EPS)


def by_sums(x: Tensor) -> Tensor:
    """With a division by the count, which is counted by hand too."""
    d = x - x.sum(dim=(2, 3), keepdim=True) / (x.shape[2] * x.shape[3])
    return d * torch.rsqrt((d * d).sum(dim=(2, 3), keepdim=True) / 32 + EPS)


def after_swish(x: Tensor) -> Tensor:
    return F.group_norm(x * torch.sigmoid(x), 3)


WRITTEN: dict[str, Callable[[Tensor], Tensor]] = {
    "group_norm": lambda x: F.group_norm(x, 3),
    "layer_norm": lambda x: F.layer_norm(x, (6, 8, 4)),
    "instance_norm": lambda x: F.instance_norm(x),
    "var": lambda x: x.var(dim=(2, 3)),
    "var of all there are": lambda x: x.var(dim=(1, 2, 3), unbiased=False),
    "std": lambda x: torch.std(x, dim=-1),
    "var and mean": lambda x: (x - x.mean(-1, True)) / (x.var(-1, unbiased=False, keepdim=True) + EPS).sqrt(),
    "by hand": by_hand,
    "by sums": by_sums,
    "after swish": after_swish,
    "doubled": lambda x: F.instance_norm(2 * x + 1),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_variance_can_be_cut(name: str) -> None:
    program = check(WRITTEN[name], {"x": IMAGE}).program
    assert moments_cuts(as_block(program)), program.ops
