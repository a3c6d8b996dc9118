"""A small decoder of two layers: learned positions, attention after a norm, a gated feed-forward, tied logits."""

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v)
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width: int, inner: int):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int):
        super().__init__()
        self.before_attention = Norm(width)
        self.attention = Attention(width, heads)
        self.before_feed_forward = Norm(width)
        self.feed_forward = FeedForward(width, inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before_attention(x))
        return x + self.feed_forward(self.before_feed_forward(x))


# mugraph: x=f32[2, 20, 48]
class TwoLayers(nn.Module):
    def __init__(self, width: int = 48, heads: int = 3, inner: int = 112, symbols: int = 90, length: int = 32):
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(length, width))
        self.symbols = nn.Parameter(torch.zeros(symbols, width))
        self.first = Layer(width, heads, inner)
        self.second = Layer(width, heads, inner)
        self.norm = Norm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.positions[: x.shape[1]]
        x = self.first(x)
        x = self.second(x)
        return self.norm(x) @ self.symbols.T
