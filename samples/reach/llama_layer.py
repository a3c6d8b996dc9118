"""A decoder layer in the style of the original Llama: complex rotary embedding, a cache written in place."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim, dtype=dtype))

    def _norm(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


def apply_rotary_emb(x: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    turned = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(turned * frequencies[None, :, None]).flatten(3).type_as(x)


# mugraph: x=f16[1, 32, 256]
class LlamaLayer(nn.Module):
    def __init__(self, dim: int = 256, heads: int = 4, positions: int = 64, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.attention_norm, self.ffn_norm = RMSNorm(dim, dtype=dtype), RMSNorm(dim, dtype=dtype)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False, dtype=dtype) for _ in range(4))
        self.w1, self.w3 = (nn.Linear(dim, 2 * dim, bias=False, dtype=dtype) for _ in range(2))
        self.w2 = nn.Linear(2 * dim, dim, bias=False, dtype=dtype)
        self.register_buffer("cache_k", torch.zeros(1, positions, heads, self.head_dim, dtype=dtype))
        self.register_buffer("cache_v", torch.zeros(1, positions, heads, self.head_dim, dtype=dtype))

    def attention(self, x: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
        bsz, seqlen, _ = x.shape
        xq, xk, xv = (w(x).view(bsz, seqlen, self.heads, self.head_dim) for w in (self.wq, self.wk, self.wv))
        xq, xk = apply_rotary_emb(xq, frequencies), apply_rotary_emb(xk, frequencies)
        self.cache_k[:bsz, :seqlen] = xk
        self.cache_v[:bsz, :seqlen] = xv
        keys, values = self.cache_k[:bsz, :seqlen].transpose(1, 2), self.cache_v[:bsz, :seqlen].transpose(1, 2)
        scores = torch.matmul(xq.transpose(1, 2), keys.transpose(2, 3)) * self.head_dim**-0.5
        scores = F.softmax(scores.float(), dim=-1).type_as(xq)
        output = torch.matmul(scores, values).transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.wo(output)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(0, self.head_dim, 2, device=x.device, dtype=torch.float32) / self.head_dim
        angles = torch.outer(torch.arange(x.shape[1], device=x.device, dtype=torch.float32), 10000.0**-steps)
        frequencies = torch.polar(torch.ones_like(angles), angles)
        h = x + self.attention(self.attention_norm(x), frequencies)
        y = self.ffn_norm(h)
        return h + self.w2(F.silu(self.w1(y)) * self.w3(y))
