"""A small convolutional net: strided and residual blocks, a depthwise and a pointwise convolution."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[2, 6, 11, 13]
class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(6, 16, 3, stride=2, padding=1, dtype=torch.float16)
        self.conv = nn.Conv2d(16, 16, 3, padding="same", bias=False, dtype=torch.float16)
        self.norm = nn.BatchNorm2d(16, dtype=torch.float16)
        self.depthwise = nn.Conv2d(16, 16, (1, 3), padding=(0, 1), groups=16, dtype=torch.float16)
        self.eval()

    def forward(self, x):
        x = F.silu(self.stem(x))
        x = x + F.silu(self.norm(self.conv(x)))
        return F.gelu(self.depthwise(x))


# mugraph: x=f16[2, 8, 40], w=f16[24, 8, 5], b=f16[24]
def temporal(x, w, b):
    """Every other moment, four steps apart."""
    return torch.tanh(F.conv1d(x, w, b, stride=2, dilation=4, padding=8))
