"""Losses: element-wise programs and sums."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: p=f32[8192, 8192], t=f32[8192, 8192]
def squared_error(p, t):
    return torch.mean((p - t) ** 2)


# mugraph: p=f32[8192, 8192], t=f32[8192, 8192]
class MseLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.MSELoss()

    def forward(self, p, t):
        return self.loss(p, t)


# mugraph: p=f32[8192, 8192], t=f32[8192, 8192]
class AbsoluteError(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.L1Loss(reduction="sum")

    def forward(self, p, t):
        return self.loss(p, t)


# mugraph: p=f32[8192, 8192], t=f32[8192, 8192]
def smooth_error(p, t):
    return F.smooth_l1_loss(p, t)


# mugraph: p=f32[8192, 8192], t=f32[8192, 8192]
class HuberError(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.HuberLoss(delta=0.5, reduction="none")

    def forward(self, p, t):
        return self.loss(p, t).mean(dim=1)


# mugraph: p=f32[8192, 8192], t=f32[8192]
def hinge(p, t):
    return torch.mean(torch.clamp(1 - p * t, min=0))


# mugraph: p=f32[4096, 16384], t=f32[4096, 16384]
def divergence(p, t):
    return F.kl_div(torch.log(p), t, reduction="batchmean")


# mugraph: p=f32[8192, 8192], t=f32[8192, 8192]
def cosine_loss(p, t):
    return torch.mean(1 - F.cosine_similarity(p, t, dim=1))


# mugraph: a=f32[8192, 8192], p=f32[8192, 8192], n=f32[8192, 8192]
class Triplet(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=1.0)

    def forward(self, a, p, n):
        return self.loss(a, p, n)


# mugraph: p=f32[4096, 4096], t=f32[4096, 4096], w=f32[4096]
def weighted_error(p, t, w):
    return (F.mse_loss(p, t, reduction="none") * w).mean()


# mugraph: z=f32[4096, 4096], t=f32[4096, 4096]
def logit_loss(z, t):
    return F.binary_cross_entropy_with_logits(z, t)


# mugraph: z=f32[4096, 32000], t=f32[4096, 32000]
class SoftTargets(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, z, t):
        return self.loss(z, t)
