"""What a sum has come to on the way to its end, which is what is rounded where terms cancel: for roundings.py.

Both take the terms in parts, one after the other: a sum of gigabytes is computed so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import torch
from torch import Tensor

from mugraph.ir.ops import Op
from mugraph.ir.tensors import Sizes
from mugraph.verification.torch_reference import Value, summed

TILE = 256
"""Numbers of a sum that are added in a tree, or side by side; what is left is added one after the other."""
_SMALLEST_TILE, _PARTS = 16, 8
"""A short sum is added up by tiles as well: by an eighth of it, or 16."""
_LOOKS = 8
"""At what a product has come to, on the way to the end."""


@dataclass
class SumSoFar:
    """After each tile. sizes: of the whole."""

    op: Op
    sizes: Sizes
    _after: list[Tensor] = field(default_factory=list[Tensor])
    _whole: Tensor | None = None

    def add(self, operands: Sequence[Value], share: float) -> None:
        operand = operands[0]
        dims = [operand.axes.index(axis) for axis in self.op.over]
        terms = operand.data.movedim(dims, [at - len(dims) for at in range(len(dims))]).flatten(-len(dims))
        tile = max(_SMALLEST_TILE, min(TILE, prod(self.sizes[axis] for axis in self.op.over) // _PARTS))
        before = terms.new_zeros(()) if self._whole is None else self._whole
        sums = terms.cumsum(-1)
        self._after.append(sums[..., tile - 1 : terms.shape[-1] - 1 : tile] + before)
        self._whole = before + terms.sum(-1, keepdim=True)

    def beyond(self) -> tuple[Tensor, None]:
        """How much more than the whole it has come to after each tile but the last, as the root of the sum of
        squares. None: of its own error nothing is known."""
        assert self._whole is not None
        whole = self._whole.square()
        parts = [(after.square() - whole).clamp_min(0.0).sum(-1) for after in self._after]
        return torch.stack(parts).sum(0).sqrt(), None


@dataclass
class ProductSoFar:
    """Of a product, which adds one number after the other. It is looked at a few times on the way. steps: of all"""

    op: Op
    sizes: Sizes
    steps: float
    _whole: Tensor | None = None
    _squares: Tensor | None = None

    def add(self, operands: Sequence[Value], share: float) -> None:
        axis = max(self.op.over, key=lambda axis: self.sizes[axis])
        size = next(one.data.shape[one.axes.index(axis)] for one in operands if axis in one.axes)
        looks = min(max(1, round(_LOOKS * share)), size)
        zero = torch.zeros((), device=operands[0].data.device)
        whole, squares = self._whole, self._squares
        for look in range(looks):
            first, last = size * look // looks, size * (look + 1) // looks
            part = summed(self.op.over, *(_between(value, axis, first, last) for value in operands)).data
            whole = part + (zero if whole is None else whole)
            squares = whole.square() * (self.steps * share / looks) + (zero if squares is None else squares)
        self._whole, self._squares = whole, squares

    def beyond(self) -> tuple[Tensor, Tensor]:
        """The same of a product, beyond what it would be if that grew evenly. And the product."""
        assert self._whole is not None
        assert self._squares is not None
        return (self._squares - self._whole.square() * (self.steps / 3)).clamp_min(0.0).sqrt_(), self._whole


def _between(value: Value, axis: str, first: int, last: int) -> Value:
    if axis not in value.axes:
        return value
    return replace(value, data=value.data.narrow(value.axes.index(axis), first, last - first))
