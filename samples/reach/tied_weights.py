"""One weight used twice, the second time transposed: an axis is both bound and free."""

import torch
from torch import nn


# mugraph: x=f16[32, 512]
class TiedAutoencoder(nn.Module):
    def __init__(self, width: int = 512, latent: int = 64, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.w = nn.Parameter(torch.empty(width, latent, dtype=dtype))
        nn.init.xavier_uniform_(self.w)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (x @ self.w) @ self.w.T
