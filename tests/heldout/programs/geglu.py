import math

import torch
import torch.nn.functional as F
from torch import nn


# mugraph: x=bf16[24, 128]
class GEGLU(nn.Module):
    """One projection, then halves: value times the GELU of the gate."""

    def __init__(self, dim=128, hidden=96):
        super().__init__()
        self.wi = nn.Linear(dim, 2 * hidden, bias=False, dtype=torch.bfloat16)
        self.wo = nn.Linear(hidden, dim, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        value, gate = self.wi(x).chunk(2, dim=-1)
        return self.wo(value * F.gelu(gate))


# mugraph: x=f16[8, 320], w_gate=f16[320, 112], w_up=f16[320, 112]
def gelu_tanh_gate(x, w_gate, w_up):
    return F.gelu(x @ w_gate, approximate="tanh") * (x @ w_up)


# mugraph: x=f16[16, 256], w=f16[256, 80], v=f16[256, 80]
def reglu(x, w, v):
    return torch.relu(x @ w) * (x @ v)


# mugraph: x=f16[16, 256], w=f16[256, 80], v=f16[256, 80]
def sigmoid_glu(x, w, v):
    return torch.sigmoid(x @ w) * (x @ v)


# mugraph: x=f16[8, 320], w_gate=f16[320, 112], w_up=f16[320, 112]
def gelu_by_hand(x, w_gate, w_up):
    """As GPT-2's authors wrote it."""
    h = x @ w_gate
    return 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0)))) * (x @ w_up)


# mugraph: a=f32[24, 96], b=f32[24, 96], w=f32[96, 72]
def smooth_maximum(a, b, w):
    """Of two, each by its share."""
    share = torch.exp(a) / (torch.exp(a) + torch.exp(b))
    return (share * a + (1 - torch.sigmoid(a - b)) * b) @ w
