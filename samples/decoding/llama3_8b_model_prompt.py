"""Four decoder layers of Llama 3 8B, embedding and head: the logits after 1,024 tokens."""

import torch
from layers import DTYPE, Layer, angles
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(128256, 4096, dtype=DTYPE)
        self.layers = nn.ModuleList(Layer(14336, norms=False) for _ in range(4))
        self.norm = nn.RMSNorm(4096, eps=1e-6, dtype=DTYPE)
        self.head = nn.Linear(4096, 128256, bias=False, dtype=DTYPE)

    def forward(self, tokens, cos, sin):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer.prompt(x, cos, sin)
        return self.head(self.norm(x[:, -1]))


def get_inputs():
    return [torch.randint(128256, (1, 1024)), *angles(torch.arange(1024), 128)]
