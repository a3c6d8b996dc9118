"""A recurrence, a step at a time: each reads the parts of its step."""

import torch
from torch import nn


# mugraph: u=f32[2, 28, 24], delta=f32[2, 28, 24], A=f32[24, 8], B=f32[2, 28, 8], C=f32[2, 28, 8]
class Scan(nn.Module):
    def forward(self, u, delta, A, B, C):
        decay = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        driven = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x = u.new_zeros(u.shape[0], u.shape[2], A.shape[1])
        ys = []
        for i in range(u.shape[1]):
            x = decay[:, i] * x + driven[:, i]
            y = torch.einsum("bdn,bn->bd", x, C[:, i, :])
            ys.append(y)
        return torch.stack(ys, dim=1)


def run(model, steps):
    generator = torch.Generator().manual_seed(3)
    u, delta = (torch.randn(2, steps, 24, generator=generator) for _ in "ud")
    b, c = (torch.randn(2, steps, 8, generator=generator) for _ in "bc")
    return [model(u, delta.abs(), -torch.rand(24, 8, generator=generator), b, c)]
