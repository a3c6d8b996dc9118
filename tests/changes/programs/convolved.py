"""A convolution without bias, and what follows it."""

import torch.nn.functional as F
from torch import nn


# mugraph: x=f32[1, 4, 6, 6]
class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.5)
        self.eval()

    def forward(self, x):
        return F.silu(self.drop(self.norm(self.conv(x))))
