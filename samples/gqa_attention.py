"""Grouped-query attention of Llama-3-70B on four devices: 16 query heads share 2 key-value heads (Mirage, Figure 8)."""

import math

import torch


# mugraph: q=f16[2, 256, 64], k=f16[2, 4096, 64], v=f16[2, 4096, 64]
def gqa_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The queries of a group are stacked into the rows of their key-value head, as serving systems do."""
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]))
    return torch.softmax(scores, dim=-1) @ v


# mugraph: q=f16[1, 16, 32, 64], k=f16[1, 2, 4096, 64], v=f16[1, 2, 4096, 64]
def gqa_attention_expanded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same work, keys and values repeated for every query head."""
    batch, heads, _, head_dim = q.shape
    kv_heads, length = k.shape[1], k.shape[2]
    group = heads // kv_heads
    k = k.unsqueeze(2).expand(batch, kv_heads, group, length, head_dim).reshape(batch, heads, length, head_dim)
    v = v.unsqueeze(2).expand(batch, kv_heads, group, length, head_dim).reshape(batch, heads, length, head_dim)
    scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(head_dim)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(weights, v)
