"""A language model as Llama 3.2 1B is: norm, grouped attention with rotated queries and keys, gated feed-forward.

Caches are stacked: [layers, batch, heads of keys, length, size of a head]. One token is written at its place in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

DTYPE = torch.bfloat16


@dataclass(frozen=True)
class Config:
    """head_norms: of queries and keys, before they are rotated. rank: of a low-rank update of the projections of
    queries and values; 0: none"""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    eps: float = 1e-5
    base: float = 500000.0
    head_norms: bool = False
    rank: int = 0


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(q, k, cos, sin):
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)


class LowRank(nn.Module):
    """A linear layer and its low-rank update (LoRA), the scale of 2 as often used."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False, dtype=DTYPE)
        self.lora_a = nn.Linear(inputs, rank, bias=False, dtype=DTYPE)
        self.lora_b = nn.Linear(rank, outputs, bias=False, dtype=DTYPE)
        self.scaling = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.lora_b(self.lora_a(x)) * self.scaling


def linear(inputs: int, outputs: int, rank: int = 0) -> nn.Module:
    return LowRank(inputs, outputs, rank) if rank else nn.Linear(inputs, outputs, bias=False, dtype=DTYPE)


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        c = config
        self.q_proj = linear(c.hidden, c.heads * c.head_size, c.rank)
        self.k_proj = linear(c.hidden, c.kv_heads * c.head_size)
        self.v_proj = linear(c.hidden, c.kv_heads * c.head_size, c.rank)
        self.o_proj = linear(c.heads * c.head_size, c.hidden)
        if c.head_norms:
            self.q_norm = nn.RMSNorm(c.head_size, eps=c.eps, dtype=DTYPE)
            self.k_norm = nn.RMSNorm(c.head_size, eps=c.eps, dtype=DTYPE)

    def forward(self, x, cos, sin, cache=None, place=None, mask=None):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, -1, self.config.head_size)
        k = self.k_proj(x).view(batch, length, -1, self.config.head_size)
        v = self.v_proj(x).view(batch, length, -1, self.config.head_size).transpose(1, 2)
        if self.config.head_norms:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = apply_rotary(q.transpose(1, 2), k.transpose(1, 2), cos, sin)
        if cache is not None:
            keys, values = cache
            keys[:, :, place] = k
            values[:, :, place] = v
            out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
        else:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.gate_proj = linear(config.hidden, config.inner)
        self.up_proj = linear(config.hidden, config.inner)
        self.down_proj = linear(config.inner, config.hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.input_norm = nn.RMSNorm(config.hidden, eps=config.eps, dtype=DTYPE)
        self.attention = Attention(config)
        self.post_norm = nn.RMSNorm(config.hidden, eps=config.eps, dtype=DTYPE)
        self.mlp = FeedForward(config)

    def forward(self, x, cos, sin, cache=None, place=None, mask=None):
        x = x + self.attention(self.input_norm(x), cos, sin, cache, place, mask)
        return x + self.mlp(self.post_norm(x))


class Decoder(nn.Module):
    """What a language model consists of. Embedding and head share their weight."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.hidden, dtype=DTYPE)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.hidden, eps=config.eps, dtype=DTYPE)
        self.head = nn.Linear(config.hidden, config.vocabulary, bias=False, dtype=DTYPE)
        self.head.weight = self.embed.weight
        angles = 1.0 / config.base ** (torch.arange(0, config.head_size, 2).float() / config.head_size)
        self.register_buffer("inverse_frequencies", angles)

    def rotary(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        turns = places[:, None].float() * self.inverse_frequencies[None]
        turns = torch.cat((turns, turns), dim=-1)
        return turns.cos().to(DTYPE), turns.sin().to(DTYPE)


class Prompt(Decoder):
    """The logits after a prompt."""

    def forward(self, tokens):
        cos, sin = self.rotary(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x[:, -1:]))

    @staticmethod
    def inputs(config: Config, length: int = 1024) -> list[torch.Tensor]:
        return [torch.randint(config.vocabulary, (1, length))]


class Step(Decoder):
    """The logits after one more token, whose keys and values are written to their place in the caches."""

    def forward(self, token, place, keys, values):
        cos, sin = self.rotary(place)
        mask = torch.arange(keys.shape[3], device=token.device)[None] <= place[:, None]
        x = self.embed(token)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, (keys[i], values[i]), place, mask)
        return self.head(self.norm(x))

    @staticmethod
    def inputs(config: Config, length: int = 2048) -> list[torch.Tensor]:
        """The last token of caches of this length."""
        shape = (config.layers, 1, config.kv_heads, length, config.head_size)
        caches = [torch.randn(shape, dtype=DTYPE) for _ in range(2)]
        return [torch.randint(config.vocabulary, (1, 1)), torch.tensor([length - 1]), *caches]
