"""What gated.py imports: a norm, and the functions of its gate."""

import torch
import torch.nn.functional as F
from torch import nn

STRENGTH = 2.0


def multiplied(by):
    def multiply(x):
        return x * by

    return multiply


halved = multiplied(0.5)


def gate(a, b, sharpness=1.0, *, shift=0.0):
    return halved(F.silu(a * sharpness + shift) * b) * STRENGTH


class Norm(nn.Module):
    @staticmethod
    def _variance(x):
        return x.pow(2).mean(-1, keepdim=True)


class RMSNorm(Norm):
    offset = 0.0

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(self._variance(x) + self.eps)

    def forward(self, x):
        return self._norm(x) * (self.weight + self.offset)
