import math

import torch
from torch import einsum


# mugraph: q=f16[2, 60, 4, 32], k=f16[2, 60, 4, 32], v=f16[2, 60, 4, 32]
def heads_last(q, k, v):
    """Batch, position, head, channel, as in many JAX ports."""
    logits = einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(32)
    weights = torch.softmax(logits, dim=-1)
    return einsum("bhqk,bkhd->bqhd", weights, v)


# mugraph: a=f32[6, 40], t=f32[5, 40, 24], b=f32[6, 24]
def bilinear(a, t, b):
    return torch.einsum("ni,oij,nj->no", a, t, b)
