"""One weight for several projections, taken apart again: queries, keys and values; up and gate."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: tokens=f16[2, 25, 48]
class PackedAttention(nn.Module):
    def __init__(self, width: int = 48, heads: int = 3, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.heads = heads
        self.packed = nn.Linear(width, 3 * width, dtype=dtype)
        self.out = nn.Linear(width, width, dtype=dtype)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length, width = tokens.size()
        parts = self.packed(tokens).chunk(3, dim=-1)
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


# mugraph: a=bf16[9, 56], both=bf16[2, 40, 56], down=bf16[56, 40]
def stacked_swiglu(a: torch.Tensor, both: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    up, gate = F.linear(a, both.flatten(0, 1)).chunk(2, dim=1)
    return F.linear(up * F.silu(gate), down)


# mugraph: h=f16[14, 40], w=f16[40, 128], bias=f16[128]
def fused_swiglu(h: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    gate, up = torch.addmm(bias, h, w).split(64, dim=-1)
    return F.silu(gate) * up
