"""Losses of preferences and of fits: log-sigmoids, Huber losses of modules, with weights for each element."""

import torch.nn.functional as F
from torch import nn


# mugraph: chosen=f32[24], rejected=f32[24]
def preference(chosen, rejected):
    return -F.logsigmoid(0.1 * (chosen - rejected)).mean()


# mugraph: guess=f32[10, 33], truth=f32[10, 33]
class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = nn.SmoothL1Loss(beta=0.3)
        self.far = nn.HuberLoss(reduction="sum", delta=2.0)

    def forward(self, guess, truth):
        return self.near(guess, truth) + 0.01 * self.far(guess * 2, truth)


# mugraph: guess=f32[10, 33], truth=f32[10, 33], w=f32[10, 33]
def weighted(guess, truth, w):
    return F.huber_loss(guess, truth, weight=w, reduction="none") * 2
