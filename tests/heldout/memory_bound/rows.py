"""Reductions over rows of any length, and over whole tensors."""

import torch
from torch import nn


# mugraph: x=f32[512, 393216]
class WideSoftmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


# mugraph: x=f32[512, 393216]
def wide_log_softmax(x):
    return torch.log_softmax(x, dim=1)


# mugraph: x=f32[16, 64, 256, 256]
class BigLayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm((64, 256, 256))

    def forward(self, x):
        return self.ln(x)


# mugraph: x=f32[28, 64, 256, 256]
def frobenius(x):
    return x / torch.norm(x, p="fro")


# mugraph: x=f32[8192, 65535]
def by_mean_of_abs(x):
    return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


# mugraph: x=f32[8192, 65535]
def by_length(x):
    return x / torch.norm(x, p=2, dim=1, keepdim=True)


# mugraph: x=f32[28, 64, 256, 256]
class ChannelRms(nn.Module):
    def forward(self, x):
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5)


# mugraph: x=f32[28, 64, 256, 256]
class ImageGroupNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(8, 64)

    def forward(self, x):
        return self.norm(x)


# mugraph: x=f32[28, 64, 256, 256]
class ImageInstanceNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm2d(64)

    def forward(self, x):
        return torch.relu(self.norm(x))


# mugraph: x=f32[28, 64, 256, 256]
class EvalBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(64)

    def forward(self, x):
        return torch.relu(self.norm(x))


# mugraph: x=f32[8192, 16384]
def sum_of_squares(x):
    return (x * x).sum()


# mugraph: x=f32[64, 4096, 1023]
def middle_mean(x):
    return torch.mean(x, dim=1)


# mugraph: x=f32[64, 4096, 1023]
def range_of_columns(x):
    return torch.amax(x, dim=1) - torch.amin(x, dim=1)


# mugraph: x=f32[1024, 131072]
def wide_logsumexp(x):
    return torch.logsumexp(x * 0.5, dim=-1)


# mugraph: x=f32[2048, 8192]
def standard_scores(x):
    return (x - x.mean()) / x.std()


# mugraph: x=f32[1024, 50257]
def softmax_entropy(x):
    p = torch.softmax(x, dim=-1)
    return -(p * torch.log(p + 1e-9)).sum(-1)
