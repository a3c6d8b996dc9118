"""Attention of a whole prompt as decoders write it: queries and keys normalised and turned, heads that share keys."""

import torch
import torch.nn.functional as F
from torch import nn


class HeadNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, width, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return wide.to(x.dtype) * self.scale


def swapped(x: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, dim=-1)
    return torch.cat((-high, low), dim=-1)


def for_all_heads(x: torch.Tensor, times: int) -> torch.Tensor:
    batch, heads, length, width = x.shape
    x = x[:, :, None, :, :].expand(batch, heads, times, length, width)
    return x.reshape(batch, heads * times, length, width)


# mugraph: xq=f16[2, 37, 96], xk=f16[2, 37, 32], xv=f16[2, 37, 32], cos=f16[37, 16], sin=f16[37, 16]
class PromptAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_norm, self.k_norm = HeadNorm(16), HeadNorm(16)

    def forward(self, xq, xk, xv, cos, sin):
        b, t, _ = xq.shape
        q = self.q_norm(xq.view(b, t, 6, 16)).transpose(1, 2)
        k = self.k_norm(xk.view(b, t, 2, 16)).transpose(1, 2)
        v = xv.view(b, t, 2, 16).transpose(1, 2)
        q = q * cos + swapped(q) * sin
        k = k * cos + swapped(k) * sin
        k, v = for_all_heads(k, 3), for_all_heads(v, 3)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).reshape(b, t, 96)


# mugraph: q=f16[1, 29, 4, 24], k=f16[1, 29, 2, 24], v=f16[1, 29, 2, 24], g=f16[24]
def interleaved_copies(q, k, v, g):
    """Positions before heads, copies by `repeat_interleave`, of keys that are scaled first."""
    k = (k * g).repeat_interleave(2, dim=2)
    v = torch.repeat_interleave(v, 2, dim=2)
    q, k, v = (x.transpose(1, 2) for x in (q * g, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.25).transpose(1, 2)


# mugraph: x=f16[2, 21, 3, 16], g=f16[16]
def turned_rows(x, g):
    """A result that does not lie row by row, as of every norm of transposed heads."""
    x = x.transpose(1, 2)
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * g
