"""Chains of element-wise operators alone."""

import math

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f32[2048, 24576]
class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


# mugraph: x=f32[6144, 8192]
class TanhGelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


# mugraph: x=f32[2048, 24576]
def soft_sign(x):
    return x / (1 + torch.abs(x))


# mugraph: x=f32[2048, 24576]
class OneHardTanh(nn.Module):
    def forward(self, x):
        return F.hardtanh(x, min_val=-1.0, max_val=1.0)


# mugraph: x=f32[2048, 24576]
def hard_sigmoid_by_hand(x):
    return torch.clamp((x + 3) / 6, 0, 1)


# mugraph: x=f32[2048, 24576]
def mish_by_hand(x):
    return x * torch.tanh(F.softplus(x))


# mugraph: x=f32[2048, 24576]
def shifted_elu(x):
    return F.elu(x, alpha=0.7) + 1.0


# mugraph: x=f32[2048, 24576]
class ScaledSelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.SELU()

    def forward(self, x):
        return self.act(x * 0.5) * 2.0


# mugraph: x=f32[2048, 24576], y=f32[2048, 24576]
def leaky_sum(x, y):
    return F.leaky_relu(x + y, negative_slope=0.2)


# mugraph: x=f32[2048, 24576]
def kept_above(x):
    return torch.where(x > 0.5, x * x, 0.1 * x)


# mugraph: x=f32[2048, 8192], keep=bool[2048, 8192]
def masked_scale(x, keep):
    return torch.where(keep, x * 1.25, 0.0)


# mugraph: x=f32[2048, 24576]
def log_of_square(x):
    return torch.log(1.0 + x * x)


# mugraph: x=f32[48, 64, 112, 112], bias=f32[64, 1, 1], scale=f32[64, 1, 1]
def channel_affine(x, bias, scale):
    return torch.sigmoid((x + bias) * scale) * x


# mugraph: x=f16[4096, 11008], b=f16[11008], r=f16[4096, 11008]
def gelu_residual(x, b, r):
    return F.gelu(x + b) + r


# mugraph: x=bf16[8192, 8192]
def swiglu_halves(x):
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


# mugraph: x=f32[64, 96, 56, 56]
class SoftClip(nn.Module):
    def __init__(self):
        super().__init__()
        self.soft = nn.Softplus(beta=2.0)

    def forward(self, x):
        return torch.clamp(self.soft(x) - 0.5, max=4.0) / 2.0


# mugraph: x=f32[2048, 24576]
def rest_of_activations(x):
    return F.tanhshrink(x) + F.celu(x, alpha=1.5) + F.logsigmoid(x) + F.softsign(x)


# mugraph: x=f32[33, 17, 129]
def odd_cube(x):
    y = x - 0.25
    y = y * y * y
    return y.clamp_(min=-2.0) + x


# mugraph: x=f32[64, 128, 127, 127]
def twice_soft(x):
    return F.mish(F.mish(x)) - F.softplus(F.softplus(x))


# mugraph: step=f32[2048, 1024], a=f32[1024, 16]
def decays(step, a):
    return torch.exp(-F.softplus(step)[..., None] * a)
