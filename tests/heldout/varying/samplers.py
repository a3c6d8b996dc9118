"""Sampling from models, with numbers that are others at each step."""

import math

import torch
import torch.nn.functional as F
from torch import nn

CALLS = {
    "drawn_from": [(1.0,), (0.7,), (0.05,), (-2.0,)],
    "noised": [(0.5,), (14.6,), (0.03,)],
    "euler": [(14.6, 9.7), (9.7, 6.1), (0.03, 0.0)],
    "guided": [(7.5,), (1.0,), (3.25,)],
    "turned": [(0.25,), (0.5,), (0.99,)],
    "Gated": [(0.5,), (1.5,)],
}

OWN = {
    "noised": [(torch.tensor(0.5),), (float("inf"),), (float("nan"),), (1e-9,), (70000.0,), (True,)],
    "euler": [(torch.ones(2, 1), 0.5), (1e-42, 0.0)],
}
"""Calls with which no kernel was tested."""


# mugraph: logits=f16[8, 100], temperature=0.7
def drawn_from(logits, temperature):
    return torch.softmax(logits.float() / temperature, dim=-1)


# mugraph: x=f16[3, 4, 16], eps=f16[3, 4, 16], sigma=2.0
def noised(x, eps, sigma):
    return F.silu(x + sigma * eps)


# mugraph: x=f32[2, 100], denoised=f32[2, 100], sigma=2.0, after=1.5
def euler(x, denoised, sigma, after):
    slope = (x - denoised) / sigma
    return x + slope * (after - sigma)


# mugraph: a=bf16[2, 96], b=bf16[2, 96], scale=7.5
def guided(a, b, scale):
    mixed = torch.add(a, b - a, alpha=scale)
    return mixed * torch.rsqrt(mixed.square().mean(-1, keepdim=True) + 1e-6)


# mugraph: x=f32[4, 32], noise=f32[4, 32], t=0.3
def turned(x, noise, t):
    alpha, sigma = math.cos(t * math.pi / 2), math.sin(t * math.pi / 2)
    return alpha * x + noise.mul(sigma)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.ones(48))
        self.up = nn.Linear(48, 32)

    # mugraph: x=f32[5, 48], strength=0.5
    def forward(self, x, strength):
        h = self.scaled(x, strength)
        return self.up(h) * strength

    def scaled(self, x, by):
        half = by / 2
        return torch.tanh(x) * self.gate * (1.0 - half) + half * x
