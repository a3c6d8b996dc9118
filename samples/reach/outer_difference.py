"""Broadcasts by unsqueeze and expand: pairwise distances, an outer product, x @ x.T."""

import torch
import torch.nn.functional as F


# mugraph: x=f16[64, 32], y=f16[128, 32]
def pairwise_distance(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    difference = x.unsqueeze(1) - y.unsqueeze(0)
    return torch.sqrt((difference * difference).sum(-1) + 1e-6)


# mugraph: x=f16[256, 128]
def cosine_similarity(x: torch.Tensor) -> torch.Tensor:
    x = F.normalize(x, dim=-1)
    return x @ x.T


# mugraph: a=f16[256], b=f16[512], w=f16[512, 64]
def outer_product(a: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.outer(a, b) @ w
