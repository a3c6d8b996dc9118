"""A loop over a ModuleList; every iteration runs the same statements."""

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width: int, dtype: torch.dtype):
        super().__init__()
        self.norm = nn.RMSNorm(width, eps=1e-6, dtype=dtype)
        self.linear = nn.Linear(width, width, bias=False, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.silu(self.linear(self.norm(x)))


# mugraph: x=f16[32, 512]
class Stack(nn.Module):
    def __init__(self, depth: int = 3, width: int = 512, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, dtype) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
