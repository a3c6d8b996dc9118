"""addmm with alpha and beta, and functional linear with a bias."""

import torch
import torch.nn.functional as F


# mugraph: c=f16[64, 512], x=f16[64, 256], w=f16[256, 512]
def addmm(c: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.addmm(c, x, w, beta=0.5, alpha=2.0)


# mugraph: x=f16[64, 256], w=f16[512, 256], b=f16[512], v=f16[128, 512]
def biased(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.linear(F.linear(x, w, b), v)
