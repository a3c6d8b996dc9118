"""Causal masks as they are written: a float buffer compared with zero, an additive triangle, PyTorch's own flag."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[2, 64, 128]
class CausalSelfAttention(nn.Module):
    """The buffer is longer than the sequence, and cut to it."""

    def __init__(self, width: int = 128, heads: int = 4, block_size: int = 256, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width, dtype=dtype)
        self.c_proj = nn.Linear(width, width, dtype=dtype)
        mask = torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size)
        self.register_buffer("bias", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(c, dim=2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (k.size(-1) ** -0.5)
        att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.c_proj(y)


# mugraph: q=f16[8, 64, 32], k=f16[8, 64, 32], v=f16[8, 64, 32]
def additive_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    t = q.shape[1]
    mask = torch.triu(torch.full((t, t), float("-inf"), dtype=q.dtype, device=q.device), diagonal=1)
    return torch.softmax(q @ k.transpose(1, 2) / 32**0.5 + mask, dim=-1) @ v


# mugraph: q=f16[2, 4, 16, 32], k=f16[2, 4, 80, 32], v=f16[2, 4, 80, 32]
def after_a_cache(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The last query sees every key."""
    new, known = q.shape[-2], k.shape[-2]
    allowed = torch.ones(new, known, dtype=torch.bool, device=q.device).tril(diagonal=known - new)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


# mugraph: q=f16[2, 4, 64, 32], k=f16[2, 4, 64, 32], v=f16[2, 4, 64, 32]
def by_the_flag(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
