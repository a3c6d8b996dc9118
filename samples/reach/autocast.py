"""Autocast: the casts show only in the results' element types."""

import torch
from torch import nn


# mugraph: x=f32[32, 256]
class AutocastMLP(nn.Module):
    def __init__(self, width: int = 256):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            y = self.up(x)
            return self.down(y * torch.sigmoid(y))
