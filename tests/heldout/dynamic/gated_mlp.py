"""A gated layer whose rows are a batch and its tokens in one: the code has the size and a multiple of it."""

import torch.nn.functional as F
from torch import nn


# mugraph: b=1..64
# mugraph: x=f16[b, 2, 64]
class GatedMLP(nn.Module):
    def __init__(self, dim=64, hidden=48):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        b, tokens, dim = x.shape
        rows = x.reshape(b * tokens, dim)
        hidden = F.silu(self.gate(rows)) * self.up(rows)
        return hidden.view(b, tokens, -1)
