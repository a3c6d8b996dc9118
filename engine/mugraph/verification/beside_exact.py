"""A kernel's numbers beside others: how far apart they are on the whole, and whether they are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mugraph.verification.near import comparable

PIECE = 1 << 23
"""Elements of the largest value of a piece: it is drawn up to sixty times, in each of nine scenarios."""


@dataclass
class Squares:
    """Sums over the pieces of an output: of its numbers' squares, and of those of the errors. And `ulps`, the most."""

    exact: float = 0.0
    ours: float = 0.0
    eager: float = 0.0
    ulps: float = 0.0

    def add(self, result: Tensor, eager: Tensor, exact: Tensor, dtype: torch.dtype) -> None:
        self.ulps = max(self.ulps, units_apart(result, eager, dtype))
        self.exact += _square(exact)
        self.ours += _square(result - exact)
        self.eager += _square(eager - exact)

    @property
    def errors(self) -> tuple[float, float]:
        """||out - ref|| / ||ref||, of the kernel and of eager PyTorch."""
        size = max(self.exact**0.5, 1e-300)
        return self.ours**0.5 / size, self.eager**0.5 / size


def units_apart(result: Tensor, eager: Tensor, dtype: torch.dtype) -> float:
    """The largest difference of two finite elements, in units in the last place that the second has in its type.

    result, eager: float64, holding numbers of the type
    """
    if not dtype.is_floating_point:
        return 0.0
    numbers = torch.finfo(dtype)
    _, exponent = torch.frexp(eager.abs().clamp_min(numbers.tiny))
    apart = (result - eager).abs() / torch.ldexp(torch.full_like(eager, numbers.eps), exponent - 1)
    both = torch.isfinite(result) & torch.isfinite(eager)
    return float(torch.where(both, apart, 0.0).max()) if apart.numel() else 0.0


def equal(one: Tensor, other: Tensor) -> bool:
    """In one type, element by element; NaN is equal to NaN, and 0 to -0."""
    if one.dtype != other.dtype:
        return False
    return all(bool(((a == b) | (a.isnan() & b.isnan())).all()) for a, b in _by_parts(one, other))


def equal_signs(one: Tensor, other: Tensor) -> bool:
    """Of all that are no NaN."""
    return all(bool(((a.signbit() == b.signbit()) | a.isnan()).all()) for a, b in _by_parts(one, other))


def _by_parts(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Of tensors of one shape, so many elements at a time as a piece has."""
    return zip(*(map(comparable, torch.split(tensor.reshape(-1), PIECE)) for tensor in tensors), strict=True)


def _square(x: Tensor) -> float:
    return float(x.square().sum())
