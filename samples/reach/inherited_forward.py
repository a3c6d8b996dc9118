"""A forward that a subclass inherits, with a hook for it to fill in, and a property."""

import torch
import torch.nn.functional as F
from torch import nn


class Gated(nn.Module):
    def __init__(self, width: int = 256, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.up = nn.Linear(width, 2 * width, bias=False, dtype=dtype)
        self.width = width

    @property
    def scale(self) -> float:
        return self.width**-0.5

    def activation(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = self.up(x).split(self.width, dim=-1)
        return self.activation(gate) * value * self.scale


# mugraph: x=f16[32, 256]
class SwiGLU(Gated):
    def activation(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(x)
