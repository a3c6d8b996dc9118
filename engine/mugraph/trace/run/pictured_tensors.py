"""Tensors of a picture, without their numbers: as they lay in memory, those that shared storage sharing it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch._subclasses.fake_tensor import FakeTensor

from mugraph.trace.picture import Node, Tensor


class PicturedTensors:
    """nodes: of the picture. To be used in the mode that the tensors are to be of. device: in place of that which most
    of them were on; None: the CPU for all."""

    def __init__(self, nodes: Sequence[Node], device: str | None = None) -> None:
        self._device = device
        self._all_on_cpu = not any(isinstance(node, Tensor) and _kind(node) != "cpu" for node in nodes)
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
        elif self._device is not None:
            made = made.to(self._place(node))
        return torch.nn.Parameter(made, requires_grad=False) if node.parameter else made

    def _plain(self, node: Tensor, dtype: torch.dtype) -> torch.Tensor:
        if self._sharing[node.storage] == 1:
            made = torch.empty_strided(node.shape, node.strides, dtype=dtype)
            if isinstance(made, FakeTensor):
                return made
            elements = max(1, made.untyped_storage().nbytes() // dtype.itemsize)
            return _strided(_filled(elements, dtype, self._place(node)), node, 0)
        if node.storage not in self._storages:
            elements = max(1, node.bytes // dtype.itemsize)
            self._storages[node.storage] = _filled(elements, dtype, self._place(node))
        return _strided(self._storages[node.storage].view(dtype), node, node.offset)

    def _place(self, node: Tensor) -> str:
        """What was on the CPU beside others on a GPU stays there."""
        if self._device is None:
            return "cpu"
        return self._device if self._all_on_cpu or _kind(node) != "cpu" else "cpu"


def _kind(node: Tensor) -> str:
    """ "cuda" of "cuda:0"."""
    return node.device.partition(":")[0]


def _filled(elements: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    if dtype.is_floating_point and dtype.itemsize > 1:
        return torch.randn(elements, dtype=torch.float32, device=device).to(dtype)
    if dtype.is_complex:
        return torch.randn(elements, dtype=dtype, device=device)
    if dtype is torch.bool:
        return torch.rand(elements, device=device) > 0.5
    return torch.zeros(elements, dtype=dtype, device=device)


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
