"""Names that the code around a kernel has uses of its own for."""

import torch
from torch import nn


# mugraph: first=f16[24, 40], now=f16[40, 36], operator=f16[36]
def scaled(first, now, operator):
    return torch.softmax(first @ now, dim=-1) * operator


# mugraph: other=f16[24, 40], launch=f16[40]
def normed(other, launch):
    run = other * torch.rsqrt((other * other).mean(-1, keepdim=True) + 1e-6)
    return run * launch


# mugraph: prepared=f32[24, 40]
class Slowly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ready = nn.Linear(40, 32)
        self.device = nn.Linear(40, 32)

    def forward(self, prepared):
        return torch.nn.functional.silu(self.ready(prepared)) * self.device(prepared)
