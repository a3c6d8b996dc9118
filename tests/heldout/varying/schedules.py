"""Samplers that read where they are in a table."""

import torch
import torch.nn as nn


class Euler:
    def __init__(self, least: float = 0.5) -> None:
        self.sigmas = torch.linspace(2.0, least, 9)
        self._step_index = 0

    # mugraph: eps=f32[8, 1024], sample=f32[8, 1024]
    @torch.no_grad()
    def update(self, eps, sample):
        normed = sample / (sample.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
        sigma = self.sigmas[self._step_index]
        denoised = normed - sigma * eps
        change = (sample - denoised) / (sigma + 0.25)
        out = sample + change * (self.sigmas[self._step_index + 1] - sigma)
        self._step_index += 1
        return out


class Prompted(nn.Module):
    """Rows of 30 numbers do not begin at whole words."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts = nn.Parameter(torch.randn(6, 30))
        self.to_out = nn.Parameter(torch.randn(30, 64) / 5)

    # mugraph: x=f32[16, 30], task=1
    def forward(self, x, task):
        return (x.softmax(-1) * self.prompts[task] + x) @ self.to_out


CALLS = {"Euler": [()] * 6, "Prompted": [(0,), (1,), (5,), (-2,)]}
OWN = {"Prompted": [(slice(1, 2),), (True,)]}
