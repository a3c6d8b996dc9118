"""RMSNorm followed by a linear layer: what precedes every attention and every MLP of a Llama (Mirage, Figure 3)."""

import torch
from torch import nn


# mugraph: x=f16[2, 4096]
class RMSNormLinear(nn.Module):
    def __init__(self, hidden: int = 4096, out: int = 6144, eps: float = 1e-6, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.norm = nn.RMSNorm(hidden, eps=eps, dtype=dtype)
        self.linear = nn.Linear(hidden, out, bias=False, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(x))
