"""Pre-norm residual blocks, twice the same class."""

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, width: int, dtype: torch.dtype):
        super().__init__()
        self.norm = nn.LayerNorm(width, dtype=dtype)
        self.up = nn.Linear(width, 4 * width, dtype=dtype)
        self.down = nn.Linear(4 * width, width, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = x
        x = self.norm(x)
        x = F.gelu(self.up(x), approximate="tanh")
        return residual + self.down(x)


# mugraph: x=f16[64, 256]
class TwoBlocks(nn.Module):
    def __init__(self, width: int = 256, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.first = Residual(width, dtype)
        self.second = Residual(width, dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))
