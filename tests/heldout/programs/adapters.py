import torch
from torch import nn


class LowRank(nn.Module):
    def __init__(self, fan_in, fan_out, r, alpha):
        super().__init__()
        self.scaling = alpha / r
        self.lora_A = nn.Parameter(torch.zeros(r, fan_in, dtype=torch.float16))
        self.lora_B = nn.Parameter(torch.zeros(fan_out, r, dtype=torch.float16))

    def delta(self, x):
        return (x @ self.lora_A.T @ self.lora_B.T) * self.scaling


# mugraph: x=f16[24, 256]
class Adapted(nn.Module):
    def __init__(self, dim=256, out=144, r=4, alpha=24):
        super().__init__()
        self.base = nn.Linear(dim, out, dtype=torch.float16)
        self.adapter = LowRank(dim, out, r, alpha)

    def forward(self, x):
        return self.base(x) + self.adapter.delta(x)


# mugraph: x=f32[10, 64], w=f32[64, 80], a=f32[64, 6], b=f32[6, 80]
def merged(x, w, a, b):
    return x @ (w + 0.5 * (a @ b))
