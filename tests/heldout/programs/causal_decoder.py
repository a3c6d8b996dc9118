"""Three ways people hide the future: a buffer of truth values, an additive triangle, PyTorch's own flag."""

import math

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: tokens=f16[2, 37, 48]
class MaskedSelfAttention(nn.Module):
    def __init__(self, width: int = 48, heads: int = 3, context: int = 72, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.heads, self.head_dim = heads, width // heads
        self.to_queries = nn.Linear(width, width, bias=False, dtype=dtype)
        self.to_keys = nn.Linear(width, width, bias=False, dtype=dtype)
        self.to_values = nn.Linear(width, width, bias=False, dtype=dtype)
        future = torch.ones(context, context, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("future", future, persistent=False)

    def heads_of(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        queries = self.heads_of(self.to_queries(tokens))
        keys = self.heads_of(self.to_keys(tokens))
        values = self.heads_of(self.to_values(tokens))
        logits = torch.einsum("bhqc,bhkc->bhqk", queries, keys) / math.sqrt(self.head_dim)
        logits = logits.masked_fill(self.future[:length, :length], torch.finfo(logits.dtype).min)
        mixed = logits.softmax(dim=-1) @ values
        return mixed.transpose(1, 2).flatten(2)


# mugraph: q=bf16[5, 29, 24], cached_k=bf16[5, 43, 24], cached_v=bf16[5, 43, 20]
def continue_from_cache(q: torch.Tensor, cached_k: torch.Tensor, cached_v: torch.Tensor) -> torch.Tensor:
    """New queries at the end of what is cached: the last one sees every key."""
    new, known = q.size(1), cached_k.size(1)
    bias = torch.full((new, known), float("-inf"), dtype=q.dtype, device=q.device)
    bias = torch.triu(bias, diagonal=known - new + 1)
    scores = torch.bmm(q, cached_k.transpose(1, 2)) * 24**-0.5 + bias
    return torch.bmm(torch.softmax(scores, dim=-1), cached_v)


# mugraph: q=f16[6, 40, 16], k=f16[6, 21, 16], v=f16[6, 21, 32]
def more_queries_than_keys(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)


# mugraph: q=f32[3, 33, 8], k=f32[3, 33, 8], v=f32[3, 33, 12]
def causal_linear_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Without a softmax, with PyTorch's tril on the scores themselves."""
    return torch.tril(q @ k.transpose(-1, -2)) @ v
