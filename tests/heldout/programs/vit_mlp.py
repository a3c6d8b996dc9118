import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self, dim, ratio=2):
        super().__init__()
        self.fc1 = nn.Linear(dim, dim * ratio)
        self.act = nn.GELU()
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(dim * ratio, dim)

    def forward(self, x):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


# mugraph: x=f32[2, 17, 64]
class MlpBlock(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim)
        self.gamma = nn.Parameter(1e-1 * torch.ones(dim))

    def forward(self, x):
        x = x + self.gamma * self.mlp(self.norm2(x))
        return x
