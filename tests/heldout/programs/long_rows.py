import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f32[2, 40960]
def wide_softmax(x):
    return torch.softmax(x, dim=1)


# mugraph: x=f32[3, 33000]
def wide_log_softmax(x):
    return F.log_softmax(x * 0.5, dim=-1)


# mugraph: x=f32[4, 16, 40, 64]
def unit_length(x):
    return x / torch.norm(x, p="fro")


# mugraph: p=f32[64, 48], t=f32[64, 48]
class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.huber = nn.HuberLoss(delta=0.5)
        self.mse = nn.MSELoss(reduction="sum")

    def forward(self, p, t):
        return self.huber(p, t), self.mse(p, t)


# mugraph: a=f32[24, 96], p=f32[24, 96], n=f32[24, 96]
def triplet(a, p, n):
    return F.triplet_margin_loss(a, p, n, margin=0.5)


# mugraph: p=f32[24, 96], t=f32[24, 96]
def cosine(p, t):
    return torch.mean(1 - F.cosine_similarity(p, t, dim=1))
