"""A decoder layer as Llama 3 8B and Qwen3 8B have it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

DTYPE = torch.float16


def angles(places: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines for `rotated`, a row for each of the places."""
    frequencies = 500000.0 ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
    turns = torch.outer(places.float(), frequencies).repeat(1, 2)
    return turns.cos().to(DTYPE), turns.sin().to(DTYPE)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Layer(nn.Module):
    """norms: of queries and keys, as Qwen3 has them"""

    def __init__(self, inner: int, *, norms: bool, hidden: int = 4096, heads: int = 32, kv_heads: int = 8) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.input_norm = nn.RMSNorm(hidden, eps=1e-6, dtype=DTYPE)
        self.q_proj = nn.Linear(hidden, hidden, bias=False, dtype=DTYPE)
        self.k_proj = nn.Linear(hidden, kv_heads * self.size, bias=False, dtype=DTYPE)
        self.v_proj = nn.Linear(hidden, kv_heads * self.size, bias=False, dtype=DTYPE)
        self.q_norm = nn.RMSNorm(self.size, eps=1e-6, dtype=DTYPE) if norms else nn.Identity()
        self.k_norm = nn.RMSNorm(self.size, eps=1e-6, dtype=DTYPE) if norms else nn.Identity()
        self.o_proj = nn.Linear(hidden, hidden, bias=False, dtype=DTYPE)
        self.attention_norm = nn.RMSNorm(hidden, eps=1e-6, dtype=DTYPE)
        self.gate_proj = nn.Linear(hidden, inner, bias=False, dtype=DTYPE)
        self.up_proj = nn.Linear(hidden, inner, bias=False, dtype=DTYPE)
        self.down_proj = nn.Linear(inner, hidden, bias=False, dtype=DTYPE)

    def projected(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        batch, length, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(batch, length, self.heads, self.size)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(batch, length, self.kv_heads, self.size)).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        return q, k, v

    def finished(self, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        x = x + self.o_proj(attended.transpose(1, 2).reshape(x.shape))
        y = self.attention_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))

    def step(self, x, cos, sin, keys, values):
        """One token. keys, values: of those before it"""
        q, k, v = self.projected(self.input_norm(x))
        keys = torch.cat((keys, rotated(k, cos, sin)), dim=2)
        values = torch.cat((values, v), dim=2)
        attended = F.scaled_dot_product_attention(rotated(q, cos, sin), keys, values, enable_gqa=True)
        return self.finished(x, attended)

    def step_joined(self, x, cos, sin, keys, values):
        """One token; also the caches with its key and value behind those of the tokens before it"""
        q, k, v = self.projected(self.input_norm(x))
        keys = torch.cat((keys, rotated(k, cos, sin)), dim=2)
        values = torch.cat((values, v), dim=2)
        attended = F.scaled_dot_product_attention(rotated(q, cos, sin), keys, values, enable_gqa=True)
        return self.finished(x, attended), keys, values

    def step_static(self, x, cos, sin, keys, values, place):
        """One token, whose key and value are written to a place of the caches"""
        q, k, v = self.projected(self.input_norm(x))
        keys[:, :, place : place + 1] = rotated(k, cos, sin)
        values[:, :, place : place + 1] = v
        attended = F.scaled_dot_product_attention(rotated(q, cos, sin), keys, values, enable_gqa=True)
        return self.finished(x, attended)

    def step_indexed(self, x, cos, sin, keys, values, place, mask):
        """One token, whose key and value are written to the caches at `place`; mask: of the keys it sees"""
        q, k, v = self.projected(self.input_norm(x))
        keys[:, :, place] = rotated(k, cos, sin)
        values[:, :, place] = v
        attended = F.scaled_dot_product_attention(rotated(q, cos, sin), keys, values, attn_mask=mask, enable_gqa=True)
        return self.finished(x, attended)

    def prompt(self, x, cos, sin):
        q, k, v = self.projected(self.input_norm(x))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.finished(x, attended)


class Decoder(nn.Module):
    """What a language model of a few layers consists of. norms: of queries and keys"""

    def __init__(self, vocabulary: int, inner: int, *, norms: bool, layers: int = 4, hidden: int = 4096) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden, dtype=DTYPE)
        self.layers = nn.ModuleList(Layer(inner, norms=norms) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden, eps=1e-6, dtype=DTYPE)
        self.head = nn.Linear(hidden, vocabulary, bias=False, dtype=DTYPE)


def step_inputs(vocabulary: int) -> list[torch.Tensor]:
    """One token at place 4,095 of the caches of four layers."""
    place = torch.tensor([4095])
    keys, values = (torch.randn(4, 1, 8, 4096, 128, dtype=DTYPE) for _ in range(2))
    mask = torch.arange(4096)[None] <= place[:, None]
    return [torch.randint(vocabulary, (1, 1)), *angles(place, 128), keys, values, place, mask]


def prompt_inputs(vocabulary: int) -> list[torch.Tensor]:
    """1,024 tokens."""
    return [torch.randint(vocabulary, (1, 1024)), *angles(torch.arange(1024), 128)]
