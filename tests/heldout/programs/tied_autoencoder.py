import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f32[22, 84]
class TiedAutoencoder(nn.Module):
    def __init__(self, dim=84, code=20):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(code, dim) * 0.1)
        self.b_in = nn.Parameter(torch.zeros(code))
        self.b_out = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        code = F.linear(x, self.weight, self.b_in)
        return F.linear(code, self.weight.t(), self.b_out)


# mugraph: x=f32[22, 84]
class LinearTied(nn.Module):
    def __init__(self, dim=84, code=20):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(code, dim) * 0.1)

    def forward(self, x):
        return x @ self.weight.T @ self.weight
