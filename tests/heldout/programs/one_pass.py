"""Several results of element-wise chains that share what they read: one pass over memory has all."""

import torch
import torch.nn.functional as F


# mugraph: param=f32[72, 40], grad=f32[72, 40], velocity=f32[72, 40]
def nesterov(param, grad, velocity):
    moved = 0.9 * velocity + (grad + 1e-4 * param)
    return param - 0.02 * (grad + 0.9 * moved), moved


# mugraph: up=f16[33, 48], gate=f16[33, 48], upstream=f16[33, 48]
def gradients_of_a_gate(up, gate, upstream):
    on = torch.sigmoid(gate)
    silu = gate * on
    return upstream * silu, upstream * up * on * (1 + gate * (1 - on))


# mugraph: left=f32[6, 20, 32], right=f32[6, 20, 32]
def complex_product(left, right):
    a, b = left.chunk(2, dim=-1)
    c, d = right.chunk(2, dim=-1)
    return a * c - b * d, a * d + b * c


# mugraph: x=f16[5, 30, 64], residual=f16[5, 30, 64]
def residual_and_gelu(x, residual):
    carried = x + residual
    return carried, F.gelu(carried) * 0.5


# mugraph: wide=f32[24, 36], row=f32[36]
def of_other_sizes(wide, row):
    """Their results have different sizes: two kernels."""
    scale = 1 + torch.exp(row)
    return wide * scale * 0.25 + wide, scale * scale - row


# mugraph: x=bf16[12, 96], carried=bf16[12, 96], gain=bf16[96]
def residual_in_float32(x, carried, gain):
    total = x.float() + carried.float()
    normed = total * torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6)
    return gain * normed.to(x.dtype), total.to(x.dtype)
