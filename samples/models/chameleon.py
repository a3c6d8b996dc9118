"""Chameleon 7B (Chameleon team, 2024): a Llama whose queries and keys are normalised, each head with weights of
its own; four of its 32 layers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

DTYPE = torch.bfloat16
HIDDEN, HEADS, SIZE, INNER, LAYERS, VOCABULARY = 4096, 32, 128, 11008, 4, 65536


class RMSNorm(nn.Module):
    """As it is often written: in float32, the weight applied after."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim, dtype=DTYPE))

    def _norm(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._norm(x.float()).type_as(x) * self.weight


class HeadNorm(nn.Module):
    """A layer norm of each head, with weights and biases by head."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HEADS, SIZE, dtype=DTYPE))
        self.bias = nn.Parameter(torch.zeros(HEADS, SIZE, dtype=DTYPE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (SIZE,), None, None, eps=1e-5) * self.weight + self.bias


def rotated(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Pairs as complex numbers, [batch, length, heads, size] and [length, size / 2]."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[:, None]).flatten(3).type_as(x)


class TransformerBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(HIDDEN, HIDDEN, bias=False, dtype=DTYPE) for _ in range(4))
        self.q_norm, self.k_norm = HeadNorm(), HeadNorm()
        self.w1, self.w3 = (nn.Linear(HIDDEN, INNER, bias=False, dtype=DTYPE) for _ in range(2))
        self.w2 = nn.Linear(INNER, HIDDEN, bias=False, dtype=DTYPE)
        self.attention_norm, self.ffn_norm = RMSNorm(HIDDEN), RMSNorm(HIDDEN)

    def forward(self, x, turns, keys=None, values=None, start=0):
        b, t, _ = x.shape
        y = self.attention_norm(x)
        q = rotated(self.q_norm(self.wq(y).view(b, t, HEADS, SIZE)), turns).transpose(1, 2)
        k = rotated(self.k_norm(self.wk(y).view(b, t, HEADS, SIZE)), turns).transpose(1, 2)
        v = self.wv(y).view(b, t, HEADS, SIZE).transpose(1, 2)
        if keys is not None:
            keys[:, :, start : start + t] = k
            values[:, :, start : start + t] = v
            k, v = keys[:, :, : start + t], values[:, :, : start + t]
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.wo(attended.transpose(1, 2).reshape(b, t, -1))
        y = self.ffn_norm(x)
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


class Chameleon(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCABULARY, HIDDEN, dtype=DTYPE)
        self.layers = nn.ModuleList(TransformerBlock() for _ in range(LAYERS))
        self.norm = RMSNorm(HIDDEN)
        self.output = nn.Linear(HIDDEN, VOCABULARY, bias=False, dtype=DTYPE)


def turns_of(places: torch.Tensor) -> torch.Tensor:
    angles = torch.outer(places.float(), 10000.0 ** (-torch.arange(0, SIZE, 2).float() / SIZE))
    return torch.polar(torch.ones_like(angles), angles)
