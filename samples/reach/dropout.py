"""Dropout and stochastic depth: nothing at all in eval mode."""

import torch
import torch.nn.functional as F
from torch import nn


class DropPath(nn.Module):
    """Drops whole samples while training."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0.0:
            return x
        keep = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
        return x * keep / (1 - self.p)


# mugraph: x=f16[4, 64, 256]
class DroppedMLP(nn.Module):
    def __init__(self, width: int = 256, p: float = 0.1, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.up = nn.Linear(width, 2 * width, dtype=dtype)
        self.down = nn.Linear(2 * width, width, dtype=dtype)
        self.drop = nn.Dropout(p)
        self.drop_path = DropPath(p)
        self.p = p

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.drop(F.silu(self.up(x)))
        y = F.dropout(self.down(y), p=self.p, training=self.training)
        return x + self.drop_path(y)
