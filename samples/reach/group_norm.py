"""Group norm over channels, and instance norm (KernelBench's convention)."""

import torch
from torch import nn

batch_size = 32
in_features = 512
out_features = 1024
num_groups = 16


class Model(nn.Module):
    def __init__(self, in_features, out_features, num_groups):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.scale = nn.Parameter(torch.ones(out_features))

    def forward(self, x):
        x = self.linear(x)
        x = self.group_norm(x)
        x = x * torch.sigmoid(x)
        x = x * self.scale
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, num_groups]
