"""A linear layer with a low-rank adapter: x W + (x A) B (Mirage, Figure 9)."""

import torch
from torch import nn


# mugraph: x=f16[16, 256], w=f16[256, 4096], a=f16[256, 16], b=f16[16, 4096]
def lora(x: torch.Tensor, w: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(x, w) + torch.matmul(torch.matmul(x, a), b)


# mugraph: x=f16[16, 4096]
class LoRALinear(nn.Module):
    """A frozen base layer and its adapter, as fine-tuning libraries write it (`scale` is alpha / rank)."""

    def __init__(
        self,
        in_features: int = 4096,
        out_features: int = 4096,
        rank: int = 16,
        alpha: float = 32.0,
        dtype: torch.dtype = torch.float16,
    ):
        super().__init__()
        self.base = nn.Linear(in_features, out_features, bias=False, dtype=dtype)
        self.down = nn.Linear(in_features, rank, bias=False, dtype=dtype)
        self.up = nn.Linear(rank, out_features, bias=False, dtype=dtype)
        self.scale = alpha / rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x)) * self.scale
