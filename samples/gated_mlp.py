"""The gated half of a Llama MLP: SiLU(x W1) * (x W2) (Mirage, Figure 10)."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[8, 4096], w1=f16[4096, 4096], w2=f16[4096, 4096]
def gated_mlp(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    gate = F.silu(x @ w1)
    up = x @ w2
    return gate * up


# mugraph: x=f16[8, 4096]
class GatedMLP(nn.Module):
    """The same as a module, where the weights are stored [out, in]."""

    def __init__(self, hidden: int = 4096, intermediate: int = 4096, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.gate = nn.Linear(hidden, intermediate, bias=False, dtype=dtype)
        self.up = nn.Linear(hidden, intermediate, bias=False, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.gate(x)) * self.up(x)
