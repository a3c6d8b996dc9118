"""Weights of four bits, two to a byte, as dequantising code takes them out."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[5, 64], packed=u8[48, 32], scale=f16[48, 1]
def per_channel(x, packed, scale):
    low, high = packed & 0xF, packed >> 4
    codes = torch.stack((low, high), dim=-1).reshape(packed.shape[0], -1)
    weight = (codes.to(torch.int8) - 8).to(x.dtype) * scale
    return x @ weight.T


# mugraph: x=f16[1, 64], packed=u8[40, 32], scales=f16[40, 4], zeros=f16[40, 4]
def with_zero_points(x, packed, scales, zeros):
    low = torch.bitwise_and(packed, 15)
    high = torch.bitwise_right_shift(packed, 4)
    codes = torch.stack([low, high], dim=2).view(40, 4, -1).half()
    weight = (codes - zeros[:, :, None]) * scales[:, :, None]
    return F.linear(x, weight.reshape(40, -1))


# mugraph: x=f32[7, 64]
class Packed(nn.Module):
    """The high half of the columns in the high bits; a sign in each code."""

    def __init__(self, inner: int = 64, outer: int = 56, group: int = 16):
        super().__init__()
        self.group = group
        self.register_buffer("codes", torch.zeros(outer, inner // 2, dtype=torch.uint8))
        self.register_buffer("scales", torch.ones(outer, inner // group))
        self.bias = nn.Parameter(torch.zeros(outer))

    def unpacked(self):
        both = torch.cat((self.codes & 0x0F, (self.codes >> 4) & 0x0F), dim=1).float() - 8.0
        groups = both.view(both.shape[0], -1, self.group) * self.scales.unsqueeze(-1)
        return groups.flatten(1)

    def forward(self, x):
        return F.silu(F.linear(x, self.unpacked(), self.bias))


# mugraph: x=bf16[3, 96], w=i8[24, 96]
def signed_high_bits(x, w):
    return x @ ((w >> 4).to(x.dtype) + 0.0625 * (w & 15).to(x.dtype)).T
