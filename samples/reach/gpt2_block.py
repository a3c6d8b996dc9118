"""A GPT-2 block: Conv1D-style weights through addmm, split heads, causal buffer, tanh GELU."""

import torch
from torch import nn


class Conv1D(nn.Module):
    """A linear layer whose weight is [in, out]."""

    def __init__(self, nf: int, nx: int, dtype: torch.dtype):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.empty(nx, nf, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(nf, dtype=dtype))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size_out = x.size()[:-1] + (self.nf,)
        x = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return x.view(size_out)


# mugraph: x=f16[2, 64, 256]
class GPT2Block(nn.Module):
    def __init__(self, width: int = 256, heads: int = 4, positions: int = 128, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width, dtype=dtype)
        self.c_attn = Conv1D(3 * width, width, dtype)
        self.c_proj = Conv1D(width, width, dtype)
        self.ln_2 = nn.LayerNorm(width, dtype=dtype)
        self.c_fc = Conv1D(4 * width, width, dtype)
        self.c_out = Conv1D(width, 4 * width, dtype)
        self.act = nn.GELU(approximate="tanh")
        mask = torch.tril(torch.ones(positions, positions, dtype=torch.bool)).view(1, 1, positions, positions)
        self.register_buffer("mask", mask, persistent=False)

    def split_heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).permute(0, 2, 1, 3)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.c_attn(x).split(x.size(-1), dim=2)
        q, k, v = self.split_heads(q), self.split_heads(k), self.split_heads(v)
        scores = torch.matmul(q, k.transpose(-1, -2)) / (v.size(-1) ** 0.5)
        length = scores.size(-1)
        lowest = torch.finfo(scores.dtype).min
        scores = torch.where(self.mask[:, :, :length, :length], scores, lowest)
        weights = nn.functional.softmax(scores, dim=-1).type(v.dtype)
        y = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
        return self.c_proj(y.view(*y.size()[:-2], -1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attend(self.ln_1(x)) + x
        return self.c_out(self.act(self.c_fc(self.ln_2(x)))) + x
