import torch
from torch import nn


# mugraph: x=f16[14, 64]
class SoftMixture(nn.Module):
    """Every expert runs; a softmax over a small router weighs them."""

    def __init__(self, dim=64, out=48, experts=4):
        super().__init__()
        self.router = nn.Linear(dim, experts, bias=False, dtype=torch.float16)
        self.experts = nn.Parameter(torch.empty(experts, dim, out, dtype=torch.float16))

    def forward(self, x):
        pi = self.router(x).softmax(dim=-1)
        each = torch.einsum("nd,edo->neo", x, self.experts)
        return (pi.unsqueeze(-1) * each).sum(dim=1)
