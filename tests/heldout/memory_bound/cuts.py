"""Chains with an operator outside the algebra in them."""

import torch
import torch.nn.functional as F


# mugraph: x=f32[4096, 8192], y=f32[4096, 8192]
def sorted_between(x, y):
    z = F.silu(x) * y + 1.0
    z = torch.sort(z, dim=-1).values
    return (z - z.mean(dim=-1, keepdim=True)) * 0.5


# mugraph: x=f32[4096, 8192], places=i64[4096, 16]
def gathered(x, places):
    p = torch.softmax(x * 0.125, dim=-1)
    return torch.gather(p, 1, places).sum(dim=-1)


# mugraph: x=f32[4096, 8192]
def best_of(x):
    z = torch.tanh(x * 0.5) * 30.0
    values, places = torch.topk(z, 8, dim=-1)
    return values / values.sum(dim=-1, keepdim=True), places


# mugraph: x=f32[4096, 8192], rows=i64[1024]
def chosen_rows(x, rows):
    z = torch.sigmoid(x) * x + 0.5
    return z[rows] * 2.0 - 1.0


# mugraph: x=f32[4096, 8192]
def running(x):
    z = torch.exp(-x * x)
    return torch.cumprod(z, dim=1) / 8192.0 + x


# mugraph: x=f32[4096, 8192]
def only_sorted(x):
    return torch.sort(x, dim=-1).values + 1.0


# mugraph: x=f32[4096, 8192], b=f32[8192]
def one_sum(x, b):
    return x + b
