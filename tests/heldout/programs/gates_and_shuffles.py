"""Gated halves, images made larger, statistics by std_mean, and products written as tensordot."""

import torch
import torch.nn as nn
import torch.nn.functional as F


# mugraph: x=f32[4, 96, 64]
class GatedConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(128, 64)

    def forward(self, x):
        return x + self.down(F.glu(self.up(x), dim=-1))


# mugraph: x=f16[2, 64, 16, 16], bias=f16[64]
def upscale(x, bias):
    return F.leaky_relu(F.pixel_shuffle(x + bias[:, None, None], 2), 0.2)


# mugraph: low=f16[2, 32, 8, 8], skip=f16[2, 32, 16, 16], scale=f16[32, 1, 1]
def merged(low, skip, scale):
    return F.silu(F.interpolate(low, scale_factor=2) * scale + skip)


# mugraph: content=f32[4, 8, 32, 32], gain=f32[4, 8, 1, 1], shift=f32[4, 8, 1, 1]
def restyled(content, gain, shift):
    deviation, mean = torch.std_mean(content, dim=(2, 3), keepdim=True)
    return gain * (content - mean) / (deviation + 1e-5) + shift


# mugraph: x=f16[8, 32, 64], w=f16[64, 4, 32], y=f16[8, 32, 4, 32]
def heads(x, w, y):
    return torch.tensordot(x, w, dims=([2], [0])) * torch.sigmoid(y)
