"""Weights of a few bits, eight or more to an integer of 32, with a scale and a zero point for each group."""

import torch
from torch import nn


# mugraph: x=f16[1, 96], words=i32[40, 12], scales=f16[40, 3], zeros=f16[40, 3]
def along_columns(x, words, scales, zeros):
    shifts = torch.arange(0, 32, 4, device=words.device)
    codes = (words.unsqueeze(-1) >> shifts) & 0xF
    groups = codes.reshape(40, 3, -1).to(x.dtype)
    weight = (groups - zeros[..., None]) * scales[..., None]
    return x @ weight.view(40, -1).t()


# mugraph: x=f32[5, 64]
class TwoBits(nn.Module):
    """Sixteen rows of the weight in one word; a zero point that is a number."""

    def __init__(self, inner=64, outer=24, group=32):
        super().__init__()
        self.group = group
        self.register_buffer("words", torch.zeros(inner // 16, outer, dtype=torch.int32))
        self.register_buffer("scales", torch.ones(inner // group, outer))

    def forward(self, x):
        shifts = torch.arange(0, 32, 2, dtype=torch.int32, device=x.device)
        codes = torch.bitwise_right_shift(self.words.unsqueeze(1), shifts[None, :, None])
        codes = torch.bitwise_and(codes.to(torch.int8), 3).view(-1, self.group, self.words.shape[1])
        weight = (codes - 1) * self.scales[:, None]
        return x @ weight.flatten(0, 1)
