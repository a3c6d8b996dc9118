"""Steps of samplers that compare where they are: the first and the last are other ones, and so is a narrow range."""

import torch
import torch.nn.functional as F

CALLS = {
    "second_order": [(3, 9.0), (2, 4.5), (5, 0.25)],
    "churned": [(2.0, 0.5), (7.0, 0.25), (1.5, 3.0)],
    "Scheduler": [(), (), ()],
}
OWN = {"second_order": [(0, 9.0), (6, 4.5)], "churned": [(0.01, 0.5), (80.0, 0.5)]}
"""Calls that compare otherwise."""


# mugraph: x=f32[4, 96], before=f32[4, 96], at=3, sigma=9.0
def second_order(x, before, at, sigma):
    h = torch.tanh(x) / sigma
    if at > 0:
        h = h + 0.5 * (h - before) * at
    return h if at == len(x) + 2 else F.silu(h) * sigma


# mugraph: x=f32[3, 64], noise=f32[3, 64], sigma=2.0, churn=0.5
def churned(x, noise, sigma, churn):
    gamma = churn / 7 if 0.05 <= sigma <= 50.0 else 0.0
    higher = sigma * (gamma + 1)
    if gamma > 0:
        x = x + noise * (higher * higher - sigma * sigma)
    return torch.tanh(x) / higher


class Scheduler:
    def __init__(self, scale=0.5):
        self.scale = scale
        self.index = 2
        self.sigmas = torch.linspace(10.0, 0.5, 12)

    # mugraph: x=f32[4, 40], velocity=f32[4, 40]
    def update(self, x, velocity):
        after = torch.tanh(x) + velocity * (self.sigmas[self.index + 1] - self.sigmas[self.index])
        if self.index + 1 == len(self.sigmas) - 1:
            after = torch.relu(after)
        self.index += 1
        return after * self.scale
