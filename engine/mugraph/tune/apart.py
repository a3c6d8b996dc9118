"""Results of programs that round, to whole numbers or to eight bits. Child process only.

Where a value lies in the middle between two numbers its own error decides which of them it becomes, so that an element
is right or a step off: how many are off tells, not how far. Which elements may be is a matter of the float test
(verification/codes.py), which knows the program's roundings.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

_TIMES = 3.0
"""As many elements as PyTorch's own that are off may be."""
_FEW, _SHARE = 4.0, 1 / 200
"""Elements, and a part of all, that say nothing by their number. Of bfloat16 numbers that are divided by a seventh of
the largest one in 1,400 lies in the middle, and a division that is exact there rounds it the other way (on an H200)."""


@dataclass
class Apart:
    """Elements of a result that are another number than in double precision. dtype: the result's own"""

    dtype: torch.dtype
    _count: int = 0
    _all: int = 0

    def add(self, value: torch.Tensor, truth: torch.Tensor) -> None:
        """Some rows of it. Those of more than eight bits may be off by a few units in the last place of the largest."""
        same = (value == truth) | (value.isnan() & truth.isnan())
        if self.dtype.is_floating_point and self.dtype.itemsize > 1 and truth.numel():
            largest = float(truth.double().abs().nan_to_num(0.0, 0.0, 0.0).max())
            same |= (value.double() - truth.double()).abs() <= 8 * torch.finfo(self.dtype).eps * largest
        self._count += truth.numel() - int(same.sum())
        self._all += truth.numel()

    @property
    def share(self) -> float:
        """Of the elements."""
        return self._count / max(1, self._all)

    def allowed(self, own: Apart) -> float:
        """The share that may be off. own: of PyTorch's result"""
        return _TIMES * own.share + _FEW / max(1, self._all) + _SHARE
