import torch
from torch import nn


# mugraph: x=f32[30, 44]
def standardise(x):
    mu = x.mean(0)
    sd = x.var(0, unbiased=False).add(1e-5).sqrt()
    return (x - mu) / sd


# mugraph: pred=f32[32, 64], gold=f32[32, 64]
def row_mse(pred, gold):
    return ((pred - gold) ** 2).mean(dim=-1)


# mugraph: x=f16[4, 6, 40, 16]
class HeadNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16, elementwise_affine=False, dtype=torch.float16)

    def forward(self, x):
        b, h, n, d = x.size()
        y = self.norm(x) * 0.7
        return y.permute(0, 2, 1, 3).reshape(b, n, h * d)
