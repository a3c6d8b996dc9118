"""Functions of tensors."""

import functools

import torch
import torch.nn.functional as F


# mugraph: x=f32[8, 32], y=f32[8, 32], w=f32[32, 24]
def product(x, y, w):
    h = F.silu(x) * y
    return torch.matmul(h, w)


# mugraph: x=f32[8, 32], w=f32[32, 24]
def filled(x, w):
    ones = torch.ones(32, 1)
    mean = x @ ones / 32
    return (x - mean) @ w + torch.full((24,), 0.5)


# mugraph: x=f32[8, 32], total=f32[8, 32], w=f32[32, 32]
def written(x, total, w):
    h = F.silu(x @ w) * 2
    total.add_(h)
    return F.silu(x) @ w + h


def scaled(by):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x) * by

        return wrapper

    return decorate


@scaled(2.0)
def squashed(x):
    return x * torch.sigmoid(x)


# mugraph: x=f32[8, 32], w=f32[32, 24]
def decorated(x, w):
    return squashed(x @ w)
