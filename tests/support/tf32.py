"""TF32 on a processor that has none."""

from __future__ import annotations

import torch


def as_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """With ten bits of mantissa, to nearest."""
    if tensor.dtype != torch.float32:
        return tensor
    bits = tensor.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
