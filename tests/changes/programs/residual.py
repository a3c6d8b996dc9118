"""Blocks of one class, of which some have a part that the others have as None, or as a function."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, shortcut=None, act=torch.tanh):
        super().__init__()
        self.up = nn.Linear(dim, dim, bias=False)
        self.act = act
        self.shortcut = shortcut

    def forward(self, x):
        kept = x if self.shortcut is None else self.shortcut(x)
        return self.act(self.up(x)) + kept


# mugraph: x=f32[6, 32]
class Residual(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.first = Block(dim)
        self.second = Block(dim, nn.Sequential(nn.Linear(dim, dim, bias=False), nn.SiLU()), nn.SiLU())

    def forward(self, x):
        return F.silu(self.second(self.first(x)))
