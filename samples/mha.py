"""Multi-head attention: 32 heads, each with its own keys and values."""

# ruff: noqa: F722
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:  # annotations are read, not evaluated: the file runs where jaxtyping is not installed
    from jaxtyping import Float16


# mugraph: b=1, h=32, s=16, n=4096
def mha(
    q: Float16[Tensor, "b h s 64"],
    k: Float16[Tensor, "b h n 64"],
    v: Float16[Tensor, "b h n 64"],
) -> Float16[Tensor, "b h s 64"]:
    return F.scaled_dot_product_attention(q, k, v)


# mugraph: q=f16[32, 16, 64], k=f16[32, 4096, 64], v=f16[32, 4096, 64]
def mha_by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax spelled out. It overflows where logits are large; a kernel made of it must not."""
    weights = torch.exp(torch.bmm(q, k.transpose(1, 2)) * 0.125)
    return torch.bmm(weights, v) / weights.sum(-1, keepdim=True)
