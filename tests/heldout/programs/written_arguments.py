"""Steps of optimisers and averages of weights: functions that write to what they are given."""

import torch
from torch import nn


# mugraph: weight=f32[300, 70], slope=f32[300, 70], momentum=f32[300, 70]
@torch.no_grad()
def heavy_ball(weight, slope, momentum):
    momentum.mul_(0.9).add_(slope)
    weight.add_(momentum, alpha=-0.05)


# mugraph: p=f32[1000], g=f32[1000], m=f32[1000]
@torch.no_grad()
def signs(p, g, m):
    p.data.mul_(1 - 1e-2 * 0.1)
    direction = m.clone().mul_(0.9).add(g, alpha=0.1).sign_()
    p.add_(direction, alpha=-1e-2)
    m.mul_(0.99).add_(g, alpha=0.01)


# mugraph: w=f32[24, 50], g=f32[24, 50], first=f32[24, 50], second=f32[24, 50]
@torch.no_grad()
def squares(w, g, first, second):
    first.lerp_(g, 0.1)
    g = g * g
    second *= 0.999
    second += g * 0.001
    size = second.abs().sqrt().add_(1e-3)
    w.addcdiv_(first, size, value=-0.01)
    return size


# mugraph: x=f16[40, 96]
class Averages(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(40, 96, dtype=torch.float16))
        self.register_buffer("width", torch.ones(40, 96, dtype=torch.float16))

    @torch.no_grad()
    def forward(self, x):
        self.mean.mul_(0.75).add_(x, alpha=0.25)
        self.width.sub_((self.width - (x - self.mean).abs()) * 0.5)
        return (x - self.mean) / (self.width + 0.1)
