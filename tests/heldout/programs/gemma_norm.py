import torch
from torch import nn


# mugraph: x=bf16[10, 176]
class GemmaRMSNorm(nn.Module):
    """Scales by one plus the weight, in float32."""

    def __init__(self, dim: int = 176, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim, dtype=torch.bfloat16))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float())
        output = output * (1.0 + self.weight.float())
        return output.type_as(x)


# mugraph: x=f16[9, 224], w=f16[224], proj=f16[224, 96]
def plus_one_then_matmul(x, w, proj):
    ms = (x * x).mean(dim=-1, keepdim=True)
    return ((x * torch.rsqrt(ms + 1e-5)) * (1 + w)) @ proj
