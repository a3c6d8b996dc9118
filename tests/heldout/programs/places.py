"""Masks and biases that people make of torch.arange, tril and triu, and losses of classes."""

import math

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: q=f16[3, 2, 53, 16], k=f16[3, 2, 53, 16], v=f16[3, 2, 53, 24]
def sliding_window(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    i = torch.arange(q.shape[-2], device=q.device)
    seen = (i[:, None] >= i[None, :]) & (i[:, None] - i[None, :] < 20)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


# mugraph: q=bf16[4, 45, 16], k=bf16[4, 45, 16], v=bf16[4, 45, 16]
def band(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Near keys on both sides, hidden by a sum of triangles."""
    ones = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device)
    near = ones.tril(6) & ones.triu(-9)
    scores = torch.bmm(q, k.mT) / 4.0
    return torch.bmm(scores.masked_fill(~near, float("-inf")).softmax(-1), v)


# mugraph: x=f32[2, 37, 48]
class AlibiAttention(nn.Module):
    def __init__(self, width: int = 48, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        slopes = 2.0 ** (-8.0 / self.heads * torch.arange(1, self.heads + 1, device=x.device))
        places = torch.arange(t, device=x.device)
        distance = places[None, :] - places[:, None]
        scores = q @ k.transpose(-1, -2) / math.sqrt(c // self.heads) + distance * slopes[:, None, None]
        scores = scores.masked_fill(distance > 0, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


# mugraph: logits=f32[70, 130], target=i64[70]
def classes(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, target)


# mugraph: x=f16[40, 32], w=f16[300, 32], target=i64[40]
def head_and_loss(x: torch.Tensor, w: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy((x @ w.T).float(), target, reduction="sum", ignore_index=0)


# mugraph: x=f32[24, 90], target=i64[24]
def smoothed(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x * 0.5, target, reduction="none", label_smoothing=0.1)


# mugraph: x=f32[6, 50, 12], valid=i32[6]
def mean_of_the_first(x: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Of rows that are padded to one length."""
    kept = torch.arange(x.shape[1], device=x.device)[None, :] < valid[:, None]
    return (x * kept[..., None]).sum(1)
