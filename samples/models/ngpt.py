"""nGPT (Loshchilov et al., 2024, sections 2 and 3): hidden states and rows of weights have the length 1, and a layer
turns the state towards what its blocks suggest, at rates that are learned.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

DTYPE = torch.bfloat16


def unit(x: torch.Tensor) -> torch.Tensor:
    return x / x.norm(p=2, dim=-1, keepdim=True)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.query, self.key, self.value, self.out = (
            nn.Linear(hidden, hidden, bias=False, dtype=DTYPE) for _ in range(4)
        )
        self.c_fc = nn.Linear(hidden, 8 * hidden, bias=False, dtype=DTYPE)
        self.mlp_c_proj = nn.Linear(4 * hidden, hidden, bias=False, dtype=DTYPE)
        self.attn_alpha = nn.Parameter(torch.full((hidden,), 0.05, dtype=DTYPE))
        self.mlp_alpha = nn.Parameter(torch.full((hidden,), 0.05, dtype=DTYPE))
        self.sqk = nn.Parameter(torch.ones(heads, self.size, dtype=DTYPE))
        self.suv = nn.Parameter(torch.ones(8 * hidden, dtype=DTYPE))
        self.hidden = hidden

    def forward(self, h, cos, sin, keys=None, values=None, place=None, mask=None):
        b, t, c = h.shape
        q = rotated(self.query(h).view(b, t, self.heads, self.size).transpose(1, 2), cos, sin)
        k = rotated(self.key(h).view(b, t, self.heads, self.size).transpose(1, 2), cos, sin)
        v = self.value(h).view(b, t, self.heads, self.size).transpose(1, 2)
        scale = self.sqk[:, None]
        q, k = scale * unit(q), scale * unit(k)
        if keys is None:
            y = F.scaled_dot_product_attention(q, k, v, scale=self.size**0.5, is_causal=True)
        else:
            keys[:, :, place] = k
            values[:, :, place] = v
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, scale=self.size**0.5)
        attended = self.out(y.transpose(1, 2).reshape(b, t, c))
        a = unit(h)
        h = unit(a + torch.abs(self.attn_alpha) * (unit(attended) - a))
        u, v = torch.chunk(self.suv * self.hidden**0.5 * self.c_fc(h), 2, dim=-1)
        made = self.mlp_c_proj(u * F.silu(v))
        a = unit(h)
        return unit(a + torch.abs(self.mlp_alpha) * (unit(made) - a))


class NormalizedGPT(nn.Module):
    """Of half a billion parameters: 24 layers, 1,024 wide."""

    def __init__(self, vocabulary: int = 32000, hidden: int = 1024, layers: int = 24, heads: int = 16) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, hidden, dtype=DTYPE)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.lm_head = nn.Linear(hidden, vocabulary, bias=False, dtype=DTYPE)
        self.sz = nn.Parameter(torch.ones(vocabulary, dtype=DTYPE))


def angles(places: torch.Tensor, size: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    turns = torch.outer(places.float(), 10000.0 ** (-torch.arange(0, size, 2).float() / size))
    return turns.cos().to(DTYPE), turns.sin().to(DTYPE)
