"""Tensors of a picture, without their numbers: as they lay in memory, those that shared storage sharing it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch._subclasses.fake_tensor import FakeTensor

from mugraph.trace.picture import Node, Tensor


class PicturedTensors:
    """nodes: of the picture. To be used in the mode that the tensors are to be of."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._sharing = Counter(node.storage for node in nodes if isinstance(node, Tensor))
        self._storages: dict[int, torch.Tensor] = {}

    def tensor(self, node: Tensor) -> torch.Tensor:
        """Raises RuntimeError where PyTorch has no such tensor."""
        dtype = getattr(torch, node.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise RuntimeError(f"this PyTorch has no dtype {node.dtype}")
        made = _mask(node, dtype) if node.triangle is not None and self._sharing[node.storage] == 1 else None
        if made is None:
            # Of these nobody knows what they hold: they are made behind the back of what watches how tensors are made
            with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
                made = self._plain(node, dtype)
        return torch.nn.Parameter(made, requires_grad=False) if node.parameter else made

    def _plain(self, node: Tensor, dtype: torch.dtype) -> torch.Tensor:
        if self._sharing[node.storage] == 1:
            made = torch.empty_strided(node.shape, node.strides, dtype=dtype)
            if isinstance(made, FakeTensor):
                return made
            return _strided(_filled(max(1, made.untyped_storage().nbytes() // dtype.itemsize), dtype), node, 0)
        if node.storage not in self._storages:
            self._storages[node.storage] = _filled(max(1, node.bytes // dtype.itemsize), dtype)
        return _strided(self._storages[node.storage].view(dtype), node, node.offset)


def _filled(elements: int, dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point and dtype.itemsize > 1:
        return torch.randn(elements, dtype=torch.float32).to(dtype)
    if dtype.is_complex:
        return torch.randn(elements, dtype=dtype)
    if dtype is torch.bool:
        return torch.rand(elements) > 0.5
    return torch.zeros(elements, dtype=dtype)


def _strided(base: torch.Tensor, node: Tensor, offset: int) -> torch.Tensor:
    return torch.as_strided(base, node.shape, node.strides, offset).detach()


def _mask(node: Tensor, dtype: torch.dtype) -> torch.Tensor | None:
    """Made by calls that are remembered, so that it is known what it holds. None for one that lay in memory
    otherwise."""
    assert node.triangle is not None
    diagonal, below, above = node.triangle
    numbers = [-float("inf") if number is None else number for number in (below, above)]
    with suppress(RuntimeError, TypeError, ValueError):
        low, high = (torch.full(node.shape, number, dtype=dtype) for number in numbers)
        made = torch.where(torch.ones(node.shape, dtype=torch.bool).tril(diagonal), low, high)
        if made.stride() == node.strides:
            return made
    return None
