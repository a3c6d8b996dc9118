"""How far results are from what they should be, in multiples of what KernelBench allows an element to differ by."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from mugraph.tune.agreeing import MORE_AT_MOST, MORE_ON_THE_WHOLE

PART = 1 << 26
"""Elements that are compared at once: of gigabytes, float64 takes several times the memory."""


@dataclass
class Far:
    """Of all elements of several results. largest: inf where one is no number and should be."""

    largest: float = 0.0
    _squares: float = 0.0
    _count: int = 0

    @property
    def mean(self) -> float:
        """Root mean square; inf where the largest is."""
        return math.inf if self.largest == math.inf else math.sqrt(self._squares / max(1, self._count))

    def add(self, found: torch.Tensor, wanted: torch.Tensor, tolerance: float) -> None:
        """tolerance: absolute, and relative to what is wanted. What is no number in both is right, and what is no
        floating-point number has to be the same."""
        if not wanted.is_floating_point():
            self.largest = self.largest if torch.equal(found, wanted) else math.inf
            return
        for one, other in zip(*(torch.split(it.reshape(-1), PART) for it in (found, wanted)), strict=True):
            same = (one == other) | (one.isnan() & other.isnan())
            error = (one.double() - other.double()).abs() / (tolerance + tolerance * other.double().abs())
            error = torch.where(same, 0.0, error).nan_to_num(nan=math.inf, posinf=math.inf)
            if error.numel():
                self.largest = max(self.largest, float(error.max()))
                self._squares += float(error.square().sum())
                self._count += error.numel()


@dataclass
class FromExact:
    """Where ours and PyTorch's differ by more than the tolerance: both from the original in double precision. Sums that
    cancel differ so in the order in which PyTorch adds them up, too; and where the next word's scores are hundreds, a
    unit in the last place of a small one is many tolerances.

    is_known: of every trial that was compared
    """

    ours: Far = field(default_factory=Far)
    pytorch: Far = field(default_factory=Far)
    is_known: bool = True

    @property
    def explains(self) -> bool:
        """Is ours no further than PyTorch's own, as of regions: of many elements that round in other places the
        largest error is another one, and the root mean square nearly the same."""
        if not self.is_known:
            return False
        at_most = self.ours.largest <= max(1.0, MORE_AT_MOST * self.pytorch.largest)
        return at_most and self.ours.mean <= max(1.0, MORE_ON_THE_WHOLE * self.pytorch.mean)

    @property
    def said(self) -> str:
        ours, own = self.ours, self.pytorch
        return (
            f"from the result in float64 by {ours.largest:.3g} ({ours.mean:.3g} in the root mean square), where "
            f"PyTorch's own is by {own.largest:.3g} ({own.mean:.3g})"
        )
