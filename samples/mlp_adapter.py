"""A bottleneck adapter with its residual: relu(x A) B + x (KernelBench's convention)."""

import torch
from torch import nn

batch = 8
hidden = 4096
rank = 16


class Model(nn.Module):
    def __init__(self, hidden: int, rank: int):
        super().__init__()
        self.down = nn.Linear(hidden, rank, bias=False, dtype=torch.float16)
        self.up = nn.Linear(rank, hidden, bias=False, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.down(x)
        y = torch.relu(y)
        y = self.up(y)
        return y + x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, hidden, dtype=torch.float16)]


def get_init_inputs() -> list[int]:
    return [hidden, rank]
