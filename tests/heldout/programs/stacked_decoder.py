"""A decoder of six layers over a prompt: root-mean-square norms, rotated and grouped heads, gated feed-forward."""

import torch
import torch.nn.functional as F
from torch import nn


class RootMeanSquare(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.gain


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, shared: int, hidden: int):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.q, self.out = (nn.Linear(width, width, bias=False, dtype=torch.float16) for _ in range(2))
        self.k, self.v = (nn.Linear(width, shared * self.size, bias=False, dtype=torch.float16) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False, dtype=torch.float16) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False, dtype=torch.float16)
        self.before, self.after = RootMeanSquare(width), RootMeanSquare(width)

    def attention(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(batch, length, self.shared, self.size).transpose(1, 2)
        v = self.v(x).view(batch, length, self.shared, self.size).transpose(1, 2)
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        k, v = (one.repeat_interleave(self.heads // self.shared, dim=1) for one in (k, v))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(batch, length, -1))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x), cos, sin)
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


# mugraph: tokens=i64[2, 19]
class Decoder(nn.Module):
    def __init__(self, width: int = 48, heads: int = 4, shared: int = 2, hidden: int = 80, depth: int = 6):
        super().__init__()
        self.embed = nn.Embedding(50, width, dtype=torch.float16)
        self.layers = nn.ModuleList(Layer(width, heads, shared, hidden) for _ in range(depth))
        self.norm = RootMeanSquare(width)
        self.head = nn.Linear(width, 50, bias=False, dtype=torch.float16)
        self.size = width // heads

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        rates = 10000.0 ** -(torch.arange(0, self.size, 2, device=x.device) / self.size)
        angles = torch.outer(torch.arange(tokens.shape[1], device=x.device), rates).repeat(1, 2)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))
