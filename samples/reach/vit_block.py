"""A vision transformer's encoder block: fused QKV, layer norms, layer scale."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int, dtype: torch.dtype):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, dtype=dtype)
        self.proj = nn.Linear(dim, dim, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = F.scaled_dot_product_attention(q, k, v)
        x = x.transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


# mugraph: x=f16[2, 197, 384]
class ViTBlock(nn.Module):
    def __init__(self, dim: int = 384, heads: int = 6, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6, dtype=dtype)
        self.attn = Attention(dim, heads, dtype)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6, dtype=dtype)
        self.fc1 = nn.Linear(dim, 4 * dim, dtype=dtype)
        self.fc2 = nn.Linear(4 * dim, dim, dtype=dtype)
        self.gamma1 = nn.Parameter(torch.full((dim,), 1e-5, dtype=dtype))
        self.gamma2 = nn.Parameter(torch.full((dim,), 1e-5, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.gamma1 * self.attn(self.norm1(x))
        x = x + self.gamma2 * self.fc2(F.gelu(self.fc1(self.norm2(x))))
        return x
