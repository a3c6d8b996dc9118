"""KernelBench's convolution problems in kind: the convolution is searched; the pooling ends its region."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.conv(x)
        x = torch.clamp(x, min=0.0, max=6.0)
        return self.pool(x)


def get_inputs():
    return [torch.rand(8, 3, 64, 64)]


def get_init_inputs():
    return [3, 16, 3]
