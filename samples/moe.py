"""The experts of a mixture, each on its own tokens: SiLU(x A) B, batched over experts."""

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=f16[8, 8, 4096], a=f16[8, 4096, 4096], b=f16[8, 4096, 4096]
def moe(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.bmm(F.silu(torch.bmm(x, a)), b)


# mugraph: x=f16[8, 8, 4096]
class Experts(nn.Module):
    """The same as a module. x: [experts, tokens, hidden]."""

    def __init__(
        self, experts: int = 8, hidden: int = 4096, intermediate: int = 4096, dtype: torch.dtype = torch.float16
    ):
        super().__init__()
        self.up = nn.Parameter(torch.empty(experts, hidden, intermediate, dtype=dtype))
        self.down = nn.Parameter(torch.empty(experts, intermediate, hidden, dtype=dtype))
        nn.init.normal_(self.up, std=hidden**-0.5)
        nn.init.normal_(self.down, std=intermediate**-0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = F.silu(torch.einsum("eth,ehi->eti", x, self.up))
        return torch.einsum("eti,eih->eth", inner, self.down)
