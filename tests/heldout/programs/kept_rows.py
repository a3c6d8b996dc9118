"""Rows kept from before and new ones behind them: caches that are returned, sinks before them, columns side by side."""

import torch
import torch.nn.functional as F


def turned(t: torch.Tensor) -> torch.Tensor:
    left, right = t.chunk(2, dim=-1)
    return torch.cat([-right, left], dim=-1)


# mugraph: q=f16[2, 4, 1, 16], k=f16[2, 2, 1, 16], c=f16[1, 16], s=f16[1, 16], old=f16[2, 2, 63, 16]
def one_more(q: torch.Tensor, k: torch.Tensor, c: torch.Tensor, s: torch.Tensor, old: torch.Tensor):
    keys = torch.cat((old, k * c + turned(k) * s), dim=2)
    return F.scaled_dot_product_attention(q * c + turned(q) * s, keys, keys, enable_gqa=True), keys


# mugraph: q=f16[3, 5, 16], first=f16[3, 4, 16], kept=f16[3, 37, 16], new=f16[3, 5, 16]
def behind_a_sink(q: torch.Tensor, first: torch.Tensor, kept: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    rows = torch.cat((first, kept, new), dim=1)
    return torch.softmax(q @ rows.mT * 0.25, dim=-1) @ rows


# mugraph: a=f16[33, 20], b=f16[33, 7], c=f16[33, 1], w=f16[28, 24]
def columns(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x = torch.cat((a.square(), b, c * 0.5), dim=1)
    return F.silu(x @ w)
