"""A region's generated code beside what PyTorch takes for the same calls, by the cost model."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.baseline.estimate import Baseline, Beside
from mugraph.baseline.rates import Rates, fitted


def beside(pytorch: Sequence[Baseline], ours_us: Sequence[float]) -> Beside | None:
    """Both of the same search units, one after the other, with what a region costs once. None where there are none."""
    if not pytorch:
        return None
    rates = fitted().rates
    peers = peers_us(pytorch, rates)
    best, us = min(peers, key=lambda name: peers[name]), rates.graph_us + sum(ours_us)
    return Beside(us, peers["eager"], peers["eager"] / us, peers, best, peers[best] / us)


def peers_us(pytorch: Sequence[Baseline], rates: Rates) -> dict[str, float]:
    """Of all these calls, by the peer's name."""
    return {
        "eager": rates.graph_us + sum(unit.eager_us for unit in pytorch),
        "torch.compile": rates.graph_us + sum(unit.compiled_us for unit in pytorch),
    }
