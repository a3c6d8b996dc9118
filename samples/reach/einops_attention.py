"""Heads split and merged by einops."""

import torch
from einops import rearrange, repeat
from torch import nn


# mugraph: x=f16[2, 64, 256]
class EinopsAttention(nn.Module):
    def __init__(self, dim: int = 256, heads: int = 4, kv_heads: int = 2, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.heads = heads
        self.group = heads // kv_heads
        self.scale = (dim // heads) ** -0.5
        self.to_q = nn.Linear(dim, dim, bias=False, dtype=dtype)
        self.to_kv = nn.Linear(dim, 2 * dim // self.group, bias=False, dtype=dtype)
        self.to_out = nn.Linear(dim, dim, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = rearrange(self.to_q(x), "b n (h d) -> b h n d", h=self.heads)
        k, v = self.to_kv(x).chunk(2, dim=-1)
        k, v = (repeat(t, "b n (h d) -> b (h g) n d", h=self.heads // self.group, g=self.group) for t in (k, v))
        attention = (torch.einsum("bhid,bhjd->bhij", q, k) * self.scale).softmax(dim=-1)
        out = rearrange(attention @ v, "b h n d -> b n (h d)")
        return self.to_out(out)
