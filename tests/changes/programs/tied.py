"""Attention of a layer's tokens to each other; its two projections have one weight."""

import math

import torch.nn.functional as F
from torch import nn


# mugraph: x=f32[8, 32]
class Tied(nn.Module):
    def __init__(self, dim=32, code=16):
        super().__init__()
        self.norm = nn.LayerNorm(dim, bias=False)
        self.first = nn.Linear(dim, code)
        self.second = nn.Linear(dim, code)
        self.second.weight = self.first.weight

    def forward(self, x):
        n = self.norm(x)
        q, k = self.first(n), self.second(n)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return F.softmax(scores, dim=-1) @ n
