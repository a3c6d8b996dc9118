"""Multi-query attention: all query heads read one key-value head (KernelBench's convention)."""

import torch
import torch.nn.functional as F
from torch import nn

heads = 64
rows = 16
length = 4096
head_dim = 64


class Model(nn.Module):
    def __init__(self, head_dim: int):
        super().__init__()
        self.scale = head_dim**-0.5

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q: [heads, rows, head_dim]; k and v: [length, head_dim]."""
        stacked = q.view(-1, q.shape[-1])
        scores = torch.matmul(stacked, k.t()) * self.scale
        attended = F.softmax(scores, dim=-1) @ v
        return attended.view(q.shape)


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(heads, rows, head_dim, dtype=torch.float16),
        torch.randn(length, head_dim, dtype=torch.float16),
        torch.randn(length, head_dim, dtype=torch.float16),
    ]


def get_init_inputs() -> list[int]:
    return [head_dim]
