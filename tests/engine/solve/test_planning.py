"""Plans of which some search units have no kernel: PyTorch's calls make what they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mugraph.ir.region import PlainCalls
from mugraph.solve.planning import complete
from mugraph.trace.regions.replay import replay
from mugraph.units.region_units import cut_region

from tests.engine.ops.harness import randn, record

X = {"x": randn(4, 16, 16), "w": randn(16, 16, seed=1)}


def masked(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    mask = torch.tril(torch.ones(16, 16, dtype=torch.bool), diagonal=0)
    scores = (x @ w).masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, -1) @ w


def bounded(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    scale = torch.clamp(w.mean(), max=torch.log(torch.tensor(100.0))).exp()
    return torch.softmax((x @ w) * scale, -1)


def filled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    return torch.cat([torch.zeros_like(y[:, :1]), y], dim=1).cumsum(1) * 2.0


@pytest.mark.parametrize("fn", [masked, bounded, filled])
def test_numbers_that_units_know_are_made_where_no_unit_has_a_kernel(fn: Callable[..., Any]) -> None:
    region = record(fn, X)
    cut, parts = cut_region(region)
    steps = complete(cut, [PlainCalls(part.calls) for part in parts])
    env = {live.value: X[live.expression] for live in region.live_ins}
    for step in steps:
        assert isinstance(step, PlainCalls)
        env = replay(step.calls, env)
    (out,) = [live.value for live in region.live_outs]
    torch.testing.assert_close(env[out], fn(**X))
