"""Activations written by hand and by name, and what an operator outside of the algebra leaves on both sides of it."""

import math

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: t=f32[9, 130]
def gelu_of_gpt(t):
    cube = torch.pow(t, 3.0)
    return 0.5 * t * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (t + 0.044715 * cube)))


# mugraph: t=f32[130, 9]
class Clipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.clip = nn.Hardtanh(-0.75, 1.5)
        self.soft = nn.Softsign()

    def forward(self, t):
        return self.clip(t * 1.25) - self.soft(t)


# mugraph: t=f16[6, 64, 3]
def gated_by_itself(t):
    gate = torch.sigmoid(t * 1.702)
    return t * gate + t * torch.tanh(F.softplus(t))


# mugraph: t=f32[12, 40], at=i64[12, 40]
def picked(t, at):
    before = F.elu(t) * 0.5 + t
    there = torch.gather(before, 1, at % 40)
    return torch.tanh(there) * there + 1.0


# mugraph: t=f32[12, 40], bias=f32[40]
def ranked(t, bias):
    shifted = F.silu(t + bias) * 2.0
    ordered, _ = torch.sort(shifted, dim=-1)
    return torch.exp(-ordered * ordered) + ordered


# mugraph: rows=f32[30, 24], which=i64[7]
def chosen(rows, which):
    scaled = torch.tanh(rows) * rows
    return F.softsign(scaled[which]) * 3.0
