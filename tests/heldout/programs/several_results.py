"""Functions that give several tensors: what they share is read and computed once."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[24, 320], y=f16[24, 320], w=f16[320, 176]
def residual_and_product(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    h = x + y
    return h, F.rms_norm(h, (320,)) @ w


# mugraph: x=f16[2, 20, 192]
class Projections(nn.Module):
    """Queries, keys and values of one norm; the keys and values are narrower."""

    def __init__(self, width: int = 192, narrow: int = 80):
        super().__init__()
        self.norm = nn.LayerNorm(width, dtype=torch.float16)
        self.queries = nn.Linear(width, width, bias=False, dtype=torch.float16)
        self.keys = nn.Linear(width, narrow, bias=False, dtype=torch.float16)
        self.values = nn.Linear(width, narrow, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x = self.norm(x)
        q = self.queries(x)
        k = self.keys(x)
        v = self.values(x)
        return q, k, v


# mugraph: x=f32[90, 210]
def moments(x: torch.Tensor):
    mean = x.mean(-1)
    variance = (x - mean.unsqueeze(-1)).square().mean(-1)
    return mean, variance


# mugraph: x=bf16[18, 256], up=bf16[256, 144], gate=bf16[256, 144]
def up_and_gate(x, up, gate):
    wide = x @ up
    opened = F.silu(x @ gate)
    return wide, opened
