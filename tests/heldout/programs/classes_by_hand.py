"""Gradients of losses of classes as people write them, classes as rows, and numbers that are written out."""

import torch
import torch.nn.functional as F


# mugraph: logits=f32[40, 24], target=i64[40]
def slope(logits, target):
    count, classes = logits.shape
    d_logits = F.softmax(logits, dim=-1) - F.one_hot(target, classes)
    d_logits /= count
    return d_logits


# mugraph: kind=i64[50], x=f16[50, 24]
def gated_by_kind(kind, x):
    picked = F.one_hot(kind, num_classes=24).to(x.dtype)
    return (x * (1.0 - picked)).exp() + picked


# mugraph: x=f32[30, 4], y=f32[30, 4]
def weighted(x, y):
    weights = torch.tensor([0.125, 0.3, 0.7, 2.0])
    shift = x.new_tensor([[1.5, 1.5, 1.5, 1.5]])
    return ((x - y).abs() * weights + shift).log().sum(-1)


# mugraph: x=f32[30, 40]
def wrapped(x):
    phase = torch.sin(x * 7.0) % 1.0
    return torch.remainder(x, 2.0).sqrt() * (phase - 0.5)


# mugraph: x=f32[30, 16]
def by_frequency(x):
    order = x.new_tensor(range(16))
    return torch.exp(-0.1 * order * x) * (order + 1.0)
