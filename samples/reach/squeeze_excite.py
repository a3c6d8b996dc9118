"""Squeeze and excitation: a mean over space, a small MLP, a gate over channels."""

import torch
from torch import nn


# mugraph: x=f16[8, 64, 28, 28]
class SqueezeExcite(nn.Module):
    def __init__(self, channels: int = 64, reduction: int = 16, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // reduction, dtype=dtype)
        self.fc2 = nn.Linear(channels // reduction, channels, dtype=dtype)
        self.act = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = x.mean(dim=(2, 3))
        gate = self.act(self.fc1(gate))
        gate = torch.sigmoid(self.fc2(gate))
        return x * gate[:, :, None, None]
