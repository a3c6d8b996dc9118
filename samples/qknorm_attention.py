"""Attention with RMS-normalised queries and keys, as in Chameleon and ViT-22B (Mirage, Figure 8: QKNorm)."""

import math

import torch
import torch.nn.functional as F


def rms_norm(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    v = x.float()
    return (v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


# mugraph: q=f16[2, 256, 64], k=f16[2, 4096, 64], v=f16[2, 4096, 64]
def qknorm_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q = rms_norm(q)
    k = rms_norm(k)
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]))
    return torch.softmax(scores, dim=-1) @ v


# mugraph: q=f16[1, 2, 256, 64], k=f16[1, 2, 4096, 64], v=f16[1, 2, 4096, 64]
def qknorm_sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same through the library's norm and attention."""
    q = F.rms_norm(q, (64,), eps=1e-6)
    k = F.rms_norm(k, (64,), eps=1e-6)
    return F.scaled_dot_product_attention(q, k, v)
