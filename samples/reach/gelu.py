"""GELU in its two forms: by tanh (opened up) and by erf (opaque)."""

import math

import torch
import torch.nn.functional as F


def new_gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


# mugraph: x=f16[32, 512], w1=f16[512, 2048], w2=f16[2048, 512]
def gelu_by_hand(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    return new_gelu(x @ w1) @ w2


# mugraph: x=f16[32, 512], w1=f16[512, 2048], w2=f16[2048, 512]
def gelu_tanh(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    return F.gelu(x @ w1, approximate="tanh") @ w2


# mugraph: x=f16[32, 512], w1=f16[512, 2048], w2=f16[2048, 512]
def gelu_erf(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    return F.gelu(x @ w1) @ w2
