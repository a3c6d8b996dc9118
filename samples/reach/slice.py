"""Slices: of a fused projection's result, of a sequence's last position, with a step."""

import torch
from torch import nn


# mugraph: x=f16[2, 64, 512]
class LastTokenHead(nn.Module):
    def __init__(self, width: int = 512, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.qk = nn.Linear(width, 2 * width, bias=False, dtype=dtype)
        self.width = width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = self.qk(x)
        q = both[..., : self.width]
        k = both[..., self.width :]
        scores = q[:, -1:, :] @ k.transpose(1, 2)
        return scores[:, 0, ::2]
