"""Cross attention: queries from one sequence, keys and values from another."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[2, 256, 320], context=f16[2, 77, 768]
class CrossAttention(nn.Module):
    def __init__(
        self,
        query_dim: int = 320,
        context_dim: int = 768,
        heads: int = 5,
        dim_head: int = 64,
        dtype: torch.dtype = torch.float16,
    ):
        super().__init__()
        inner_dim = dim_head * heads
        self.heads = heads
        self.scale = dim_head**-0.5
        self.to_q = nn.Linear(query_dim, inner_dim, bias=False, dtype=dtype)
        self.to_k = nn.Linear(context_dim, inner_dim, bias=False, dtype=dtype)
        self.to_v = nn.Linear(context_dim, inner_dim, bias=False, dtype=dtype)
        self.to_out = nn.Sequential(nn.Linear(inner_dim, query_dim, dtype=dtype), nn.Dropout(0.0))

    def heads_to_batch(self, t: torch.Tensor) -> torch.Tensor:
        b, n, _ = t.shape
        return t.reshape(b, n, self.heads, -1).permute(0, 2, 1, 3).reshape(b * self.heads, n, -1)

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        context = x if context is None else context
        q, k, v = map(self.heads_to_batch, (self.to_q(x), self.to_k(context), self.to_v(context)))
        weights = F.softmax(torch.bmm(q, k.transpose(1, 2)) * self.scale, dim=-1)
        out = torch.bmm(weights, v)
        b, n, _ = x.shape
        out = out.reshape(b, self.heads, n, -1).permute(0, 2, 1, 3).reshape(b, n, -1)
        return self.to_out(out)
