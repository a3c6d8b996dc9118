"""Inputs of a call: as declared, and in other shapes, layouts and types, or of shared memory."""

from __future__ import annotations

from typing import Any

import torch

from tests.trust.whole_programs.specs import converted

Inputs = dict[str, Any]
Declared = dict[str, tuple[torch.dtype, tuple[int, ...]]]


def drawn(spec: Declared, shift: int = 0, noise: int = 0) -> Inputs:
    generator = torch.Generator().manual_seed(5 + shift)
    made: Inputs = {}
    for name, (kind, shape) in spec.items():
        numbers = torch.randn(shape, generator=generator) * (0.3 if name == "w" else 1.0)
        if noise and kind.is_floating_point:
            own = torch.Generator().manual_seed(noise)
            numbers = numbers * (1 + torch.finfo(kind).eps * torch.randn(shape, generator=own))
        made[name] = converted(numbers, kind)
    return made


def with_rows(spec: Declared, rows: int) -> Declared:
    return {
        name: (kind, shape if name == "w" or len(shape) < 2 else (*shape[:-2], rows, shape[-1]))
        for name, (kind, shape) in spec.items()
    }


def differentiable(inputs: Inputs) -> Inputs:
    leaves = {name: one.requires_grad_() if one.is_floating_point() else one for name, one in inputs.items()}
    return {name: one * 1 if one.is_floating_point() else one for name, one in leaves.items()}


def wanting(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.requires_grad_() if tensor.is_floating_point() else tensor


def turned(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.mT.contiguous().mT if tensor.dim() > 1 else torch.stack([tensor, tensor], -1)[..., 0]


def cast(tensor: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    return tensor.to(kind) if tensor.is_floating_point() else tensor


def one_tensor(inputs: Inputs) -> Inputs:
    first = next(iter(inputs.values()))
    return {
        name: first if one.shape == first.shape and one.dtype == first.dtype else one for name, one in inputs.items()
    }


def overlapping(spec: Declared, made: Inputs) -> Inputs:
    """The second begins a row after the first, in the same memory."""
    (one, (kind, shape)), (other, _) = list(spec.items())[:2]
    if spec[other] == (kind, shape):
        base = torch.cat([made[one], made[other][:1]])
        made[one], made[other] = base[:-1], base[1:]
    return made


def of_one_tensor(spec: Declared, made: Inputs) -> Inputs:
    """Beside each other in the same memory."""
    one, other = list(spec)[:2]
    if spec[one] == spec[other]:
        made[one], made[other] = torch.stack([made[one], made[other]]).unbind(0)
    return made
