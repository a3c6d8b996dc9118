"""Modules in a ModuleDict, parameters in a ParameterList, and a buffer."""

import torch
from torch import nn


# mugraph: x=f16[32, 256]
class Towers(nn.Module):
    def __init__(self, width: int = 256, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.towers = nn.ModuleDict({name: nn.Linear(width, width, dtype=dtype) for name in ("left", "right")})
        self.gains = nn.ParameterList(nn.Parameter(torch.ones(width, dtype=dtype)) for _ in range(2))
        self.register_buffer("shift", torch.zeros(width, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = self.towers["left"](x) * self.gains[0]
        right = self.towers["right"](x) * self.gains[1]
        return left * right + self.shift
