"""A 1×1 convolution is a linear layer over channels."""

import torch
from torch import nn


# mugraph: x=f16[4, 128, 14, 14]
class Pointwise(nn.Module):
    def __init__(self, channels: int = 128, out: int = 256, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel_size=1, bias=False, dtype=dtype)
        self.norm = nn.BatchNorm2d(out, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.conv(x))
        return y * torch.sigmoid(y)
