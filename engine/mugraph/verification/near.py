"""Whether results are as near to eager PyTorch's as others that were compared with float64, all of them.

A program of gigabytes is compared with float64 in a few pieces: they show what rounding does, and inputs of every kind
are in each. What a kernel gets wrong elsewhere, and not there, is where it reads and writes. That is no matter of
rounding, and shows as soon as one number is not near the one that is due.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_TIMES = 8.0
"""How much further than all others an element may be."""


@dataclass
class Near:
    """Of one output. apart: the largest difference. share: the largest, relative to eager PyTorch's number, of those
    that are not small"""

    apart: float = 0.0
    share: float = 0.0

    def add(self, result: Tensor, eager: Tensor) -> None:
        """What was compared with float64."""
        result, eager = comparable(result), comparable(eager)
        difference, size = _apart(result, eager)
        self.apart = max(self.apart, _most(difference))
        large = size >= size.square().mean().sqrt()
        self.share = max(self.share, _most(torch.where(large, difference / size.clamp_min(1e-300), 0.0)))

    def has(self, result: Tensor, eager: Tensor) -> bool:
        """Whether what was not compared is as near, and not a number just where eager PyTorch has none."""
        epsilon = torch.finfo(result.dtype).eps if result.is_floating_point() else 0.0
        result, eager = comparable(result), comparable(eager)
        if not bool((torch.isfinite(result) == torch.isfinite(eager)).all()):
            return False
        difference, size = _apart(result, eager)
        return bool((difference <= _TIMES * (self.apart + (self.share + epsilon) * size)).all())


def comparable(tensor: Tensor) -> Tensor:
    """A GPU does not compare numbers of float8, nor tell which are infinite."""
    return tensor.float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor


def _apart(result: Tensor, eager: Tensor) -> tuple[Tensor, Tensor]:
    """The difference of each element, and eager PyTorch's without its sign, in float64; zero where there is no
    number."""
    known = torch.isfinite(result) & torch.isfinite(eager)
    one, other = (torch.where(known, x, 0).to(torch.float64) for x in (result, eager))
    return (one - other).abs(), other.abs()


def _most(values: Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0
