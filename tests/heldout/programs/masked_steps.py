"""Masks that are arguments, or rows of a triangle that positions choose: a step of a decoder, and padded batches."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: q=f32[2, 3, 5, 16], k=f32[2, 3, 26, 16], v=f32[2, 3, 26, 16], mask=bool[2, 1, 5, 26]
def seen(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


# mugraph: q=bf16[1, 6, 2, 32], k=bf16[1, 2, 40, 32], v=bf16[1, 2, 40, 32], bias=bf16[6, 2, 40]
def biased(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, bias, enable_gqa=True)


# mugraph: q=f16[2, 4, 9, 16], k=f16[2, 4, 33, 16], v=f16[2, 4, 33, 16], padding=bool[2, 33]
def padded(q, k, v, padding):
    scores = q @ k.transpose(-1, -2) * 0.25
    scores = scores.masked_fill(padding[:, None, None, :], float("-inf"))
    return scores.softmax(-1) @ v


# mugraph: q=f16[3, 4, 12, 16], k=f16[3, 4, 20, 16], v=f16[3, 4, 20, 16], mask=bool[12, 20]
def seen_by_all(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


# mugraph: q=f16[3, 2, 10, 16], k=f16[3, 2, 24, 16], v=f16[3, 2, 24, 16], hidden=bool[3, 1, 10, 24]
def by_hand(q, k, v, hidden):
    scores = torch.matmul(q, k.transpose(2, 3)) / 4.0
    return torch.matmul(scores.masked_fill(hidden, float("-inf")).softmax(dim=-1), v)


# mugraph: x=f32[1, 2, 48], places=i64[2]
class Step(nn.Module):
    """A token at each of the places, which see what is before them."""

    def __init__(self, width=48, heads=3, length=32):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.register_buffer("keys", torch.zeros(1, heads, length, width // heads))
        self.register_buffer("values", torch.zeros(1, heads, length, width // heads))
        self.register_buffer("causal", torch.tril(torch.ones(length, length, dtype=torch.bool)))

    def attend(self, x, places, mask):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(c, dim=-1))
        self.keys[:, :, places] = k
        self.values[:, :, places] = v
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x, places):
        mask = self.causal[None, None, places]
        return x + self.attend(self.norm(x), places, mask)
