"""Grouped keys repeated for every query head, two ways."""

import torch


# mugraph: q=f16[1, 8, 64, 64], k=f16[1, 2, 256, 64], v=f16[1, 2, 256, 64]
def repeat_interleave(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    group = q.size(1) // k.size(1)
    k = torch.repeat_interleave(k, group, dim=1)
    v = v.repeat_interleave(group, 1)
    return torch.softmax(q @ k.mT * 0.125, -1) @ v


# mugraph: q=f16[1, 8, 64, 64], k=f16[1, 2, 256, 64], v=f16[1, 2, 256, 64]
def repeat_kv(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    batch, kv_heads, length, dim = k.shape
    group = q.size(1) // kv_heads
    k = k[:, :, None, :, :].expand(batch, kv_heads, group, length, dim).reshape(batch, -1, length, dim)
    v = v[:, :, None].repeat(1, 1, group, 1, 1).flatten(1, 2)
    return torch.softmax(q @ k.mT * 0.125, -1) @ v
