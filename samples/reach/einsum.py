"""Contractions by einsum, with three and four operands."""

import torch


# mugraph: x=f16[4, 64, 128], a=f16[128, 16], b=f16[16, 256]
def low_rank(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bsd,dr,re->bse", x, a, b)


# mugraph: q=f16[2, 64, 4, 32], k=f16[2, 64, 4, 32], v=f16[2, 64, 4, 32], w=f16[4, 32, 128]
def attention_einsum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    weights = torch.einsum("bqhd,bkhd->bhqk", q, k).mul(32**-0.5).softmax(dim=-1)
    return torch.einsum("bhqk,bkhd,hde->bqe", weights, v, w)


# mugraph: x=f16[4, 64], a=f16[64, 32], y=f16[4, 32], s=f16[4]
def bilinear(x: torch.Tensor, a: torch.Tensor, y: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bi,ij,bj,b->b", x, a, y, s)
