"""Rotary positions in the forms people write them: halves, neighbours, and pairs taken apart."""

import torch
import torch.nn.functional as F


def turned(t: torch.Tensor) -> torch.Tensor:
    left, right = t.chunk(2, dim=-1)
    return torch.cat([-right, left], dim=-1)


# mugraph: q=f16[2, 3, 29, 16], k=f16[2, 3, 37, 16], c=f16[37, 16], s=f16[37, 16]
def scores_of_halves(q: torch.Tensor, k: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Queries are the last of the positions."""
    first = k.shape[2] - q.shape[2]
    q = q * c[first:] + turned(q) * s[first:]
    k = k * c + turned(k) * s
    return q @ k.mT * 0.25


def with_neighbours(t: torch.Tensor, angles_cos: torch.Tensor, angles_sin: torch.Tensor) -> torch.Tensor:
    even, odd = t[..., ::2], t[..., 1::2]
    moved = torch.stack((-odd, even), dim=-1).flatten(-2)
    return t * angles_cos + moved * angles_sin


# mugraph: query=f32[5, 21, 12], key=f32[5, 21, 12], value=f32[5, 21, 20], ac=f32[21, 12], an=f32[21, 12]
def interleaved(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, ac: torch.Tensor, an: torch.Tensor
) -> torch.Tensor:
    return F.scaled_dot_product_attention(with_neighbours(query, ac, an), with_neighbours(key, ac, an), value)
