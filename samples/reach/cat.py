"""Concatenated weights: both projections in one product, cut apart again."""

import torch
import torch.nn.functional as F


# mugraph: x=f16[16, 1024], gate=f16[1024, 2048], up=f16[1024, 2048]
def fused_swiglu(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    both = x @ torch.cat([gate, up], dim=1)
    left, right = both.chunk(2, dim=-1)
    return F.silu(left) * right


# mugraph: a=f16[16, 512], b=f16[16, 512], w=f16[1024, 1024]
def concatenated_input(a: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.cat((a, b), dim=-1) @ w
