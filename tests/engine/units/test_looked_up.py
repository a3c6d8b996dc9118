"""One element of each row: of a row that is computed it is picked on the way, of one in memory it is looked up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mugraph.ir.ops import Kind
from mugraph.ir.region import SearchUnit

from tests.engine.units.regions import cut, meta

X, W, Y = meta(64, 80), meta(1024, 80), meta(64, dtype=torch.int64)


def units(fn: Callable[..., Any], **inputs: torch.Tensor) -> list[SearchUnit]:
    return [part for part in cut(fn, **inputs) if isinstance(part, SearchUnit)]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: torch.gather(x, 1, y[:, None]) * 2.0,
        lambda x, y: torch.nn.functional.nll_loss(x, y, reduction="none"),
    ],
)
def test_what_is_in_memory_is_looked_up(fn: Callable[..., Any]) -> None:
    assert units(fn, x=meta(64, 1024), y=Y) == []


def test_what_is_computed_is_picked() -> None:
    def loss(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = x @ w.t()
        return torch.logsumexp(logits, -1) - logits.gather(1, y[:, None]).squeeze(1)

    (unit,) = units(loss, x=X, w=W, y=Y)
    assert sum(op.kind.is_plain_sum for op in unit.program.ops) == 2


def test_a_log_sum_exp_by_hand_is_one() -> None:
    """At any scale; and a maximum that is not added again stays."""

    def by_hand(scale: float, again: float) -> list[SearchUnit]:
        def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            logits = x @ w.t()
            top = logits.amax(-1, keepdim=True)
            return (scale * (logits - top)).exp().sum(-1).log() + again * top.squeeze(-1)

        return units(loss, x=X, w=W)

    def has_maximum(found: list[SearchUnit]) -> bool:
        return any(op.kind is Kind.AMAX for unit in found for op in unit.program.ops)

    assert not has_maximum(by_hand(1.0, 1.0))
    assert not has_maximum(by_hand(0.5, 0.5))
    assert has_maximum(by_hand(0.5, 1.0))
    assert has_maximum(by_hand(1.0, -1.0))
