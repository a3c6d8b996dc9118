"""What the arguments of calls are drawn as: tensors, conditions, numbers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

Rng = random.Random


@dataclass(frozen=True)
class T:
    """A tensor argument: normal numbers, or positive ones. exact: numbers that every float type holds.
    unit: from 0 to 1"""

    shape: tuple[int, ...]
    positive: bool = False
    exact: bool = False
    unit: bool = False

    def make(self) -> torch.Tensor:
        if self.exact:
            return torch.randint(-8, 9, self.shape) / 4
        if self.unit:
            return torch.rand(self.shape)
        tensor = torch.randn(self.shape)
        return tensor.abs() + 0.5 if self.positive else tensor


@dataclass(frozen=True)
class Indices:
    """Whole numbers from 0, or from the least one, up to below a count."""

    shape: tuple[int, ...]
    count: int
    least: int = 0

    def make(self) -> torch.Tensor:
        return torch.randint(self.least, self.count, self.shape)


@dataclass(frozen=True)
class Lower:
    """A condition that is constant: true up to a diagonal (or from there on)."""

    shape: tuple[int, ...]
    diagonal: int
    upper: bool = False

    def make(self) -> torch.Tensor:
        ones = torch.ones(self.shape, dtype=torch.bool)
        return ones.triu(self.diagonal) if self.upper else ones.tril(self.diagonal)


@dataclass(frozen=True)
class Drawn:
    """results: tensors that the call returns, of which one is `taken`; 0 for one that is no tuple. summed: over
    everything, at the end."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: int = 0
    taken: int = 0
    summed: bool = False


def drawn(*args: Any, **kwargs: Any) -> Drawn:
    return Drawn(args, kwargs)


def shape(rng: Rng, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(least, most)))


def broadcast(rng: Rng, of: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to `of`."""
    kept = of[rng.randint(0, len(of)) :] if rng.random() < 0.5 else of
    return tuple(1 if rng.random() < 0.3 else size for size in kept)


def number(rng: Rng) -> float | int:
    return rng.choice((2, -1, 0.5, -1.5, 3, 0, 1))


def some(rng: Rng, **choices: Any) -> dict[str, Any]:
    """Each keyword, or not."""
    return {name: value for name, value in choices.items() if rng.random() < 0.5}
