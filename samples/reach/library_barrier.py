"""Third-party and host code inside a function: numpy, a counter on self, a generator."""

from collections.abc import Iterator

import torch
from torch import nn


# mugraph: x=f16[32, 256]
class Counted(nn.Module):
    def __init__(self, width: int = 256, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.linear = nn.Linear(width, width, dtype=dtype)
        self.calls = 0

    def halves(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        yield x[:, : x.shape[1] // 2] * 0.5
        yield x[:, x.shape[1] // 2 :] * 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.sigmoid(self.linear(x))
        self.calls += 1
        return torch.cat(list(self.halves(y)), dim=1)
