"""Softplus and its kin one after the other, and an exponential of one, as in a state-space model."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f32[12, 40], w=f32[40, 24]
def twice(x, w):
    return F.mish(F.logsigmoid(x @ w) + 1.0)


# mugraph: x=f32[3, 21, 16], step=f32[3, 21, 16]
class Discretised(nn.Module):
    """exp(softplus(step) a) x, added up over the states."""

    def __init__(self):
        super().__init__()
        self.log_a = nn.Parameter(torch.randn(16, 4) / 4)
        self.bias = nn.Parameter(torch.randn(16))

    def forward(self, x, step):
        step = F.softplus(step + self.bias)
        kept = torch.exp(step[..., None] * -torch.exp(self.log_a))
        return (kept * x[..., None]).sum(-1)
