"""Rates of PyTorch's kernels, fitted to measured times; and how far estimates are from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from random import Random
from statistics import median

import numpy as np

from mugraph.baseline.beside import peers_us
from mugraph.baseline.cost import baseline
from mugraph.baseline.launches import launches
from mugraph.baseline.rates import Rates
from mugraph.ir.region import Region
from mugraph.research.points import Point
from mugraph.targets import Target

ESTIMATED = ("eager", "torch.compile")
_FAR = 0.5
"""An error of the logarithm from which on it counts linearly, so that a few odd points do not decide."""
_TOWARDS = 0.002
"""How much a rate is held to where it began, for those that few points tell of."""
_LARGE = 3e10
"""Operations of a product."""
SHARES = frozenset(("stream", "library", "wide", "float32", "convolved32", "fused_stream"))


@dataclass(frozen=True)
class Sample:
    """A point with its region, measured on the device that the target stands for."""

    point: Point
    region: Region
    target: Target

    def peers_us(self, rates: Rates) -> dict[str, float]:
        """By estimate."""
        region = self.region
        after = {live.value for live in region.live_outs}
        return peers_us([baseline(region.calls, region.values, after, self.target, rates)], rates)

    def errors(self, rates: Rates) -> list[float]:
        """Logarithms of estimate / measured, of each peer that is estimated."""
        peers = self.peers_us(rates)
        return [log(peers[name] / self.point.us[name]) for name in ESTIMATED if name in self.point.us]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of estimates with measurements. error: the median of |estimate / measured - 1|; correlation: of logarithms"""

    count: int
    error: float
    within: float
    correlation: float

    def __str__(self) -> str:
        return (
            f"{self.count:>4} points: median error {self.error:.0%}, within 30 % {self.within:.0%},"
            f" correlation {self.correlation:.2f}"
        )


def agreement(pairs: Sequence[tuple[float, float]]) -> Agreement:
    """pairs: estimated, measured"""
    errors = [abs(estimate / measured - 1) for estimate, measured in pairs]
    estimates, times = np.log(np.array(pairs)).T
    flat = len(pairs) < 2 or estimates.std() == 0 or times.std() == 0
    correlation = 0.0 if flat else float(np.corrcoef(estimates, times)[0, 1])
    return Agreement(len(pairs), median(errors), sum(error <= 0.3 for error in errors) / len(errors), correlation)


def fit(samples: Sequence[Sample], begin: Rates | None = None, rounds: int = 40) -> Rates:
    """By descent along one rate after the other, in logarithms: there are few, and the estimate is no smooth function
    of them."""
    start = asdict(begin or Rates())
    now = dict(start)

    def loss(values: dict[str, float]) -> float:
        rates = Rates(**values)
        total = sum(_loss(error) for sample in samples for error in sample.errors(rates))
        held = sum(log(values[name] / start[name]) ** 2 for name in values)
        return total / max(1, len(samples)) + _TOWARDS * held

    fixed = frozenset[str]() if any(_is_large(sample) for sample in samples) else frozenset(("wide",))
    return Rates(**descended(now, loss, SHARES, rounds, fixed))


def descended(
    begin: dict[str, float],
    loss: Callable[[dict[str, float]], float],
    shares: Collection[str],
    rounds: int,
    fixed: Collection[str] = (),
) -> dict[str, float]:
    """Values with a small loss, rounded: a step along each value, then steps along random directions, since values
    make up for one another. shares: values that are at most 1; fixed: those that stay"""
    now, step, best = dict(begin), 0.4, loss(begin)
    free = [name for name in begin if name not in fixed]
    draw = Random(0)
    for _ in range(rounds):
        before = best
        ways = [{name: 1.0} for name in free]
        ways += [{name: draw.gauss(0.0, 0.7) for name in free} for _ in free]
        for way in ways:
            now, best = _stepped(now, way, step, best, loss, shares)
        if best > before * (1 - 1e-3):
            step /= 2
        if step < 0.005:
            break
    return {name: float(f"{value:.3g}") for name, value in now.items()}


def _is_large(sample: Sample) -> bool:
    """Whether it has a product that shows what the tensor cores reach: small ones wait for memory and for themselves,
    and a rate that was fitted to them alone would make large ones slow."""
    each = launches(sample.region.calls, sample.region.values)
    products = [one for launch in each if launch.dtype in ("f16", "bf16") for one in launch.products]
    return any(2.0 * one.matrices * one.rows * one.columns * one.depth >= _LARGE for one in products)


def _stepped(
    now: dict[str, float],
    way: dict[str, float],
    step: float,
    best: float,
    loss: Callable[[dict[str, float]], float],
    shares: Collection[str],
) -> tuple[dict[str, float], float]:
    for sign in (step, -step):
        changed = {name: now[name] * exp(sign * much) for name, much in way.items()}
        tried = {**now, **{name: min(value, 1.0) if name in shares else value for name, value in changed.items()}}
        found = loss(tried)
        if found < best:
            return tried, found
    return now, best


def _loss(error: float) -> float:
    size = abs(error)
    return size * size if size < _FAR else _FAR * (2 * size - _FAR)
