"""A decoder layer of Qwen3 8B: a prompt of 1,024 tokens."""

from layers import Layer
from torch import nn


# mugraph: x=f16[1, 1024, 4096], cos=f16[1024, 128], sin=f16[1024, 128]
class Prompt(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer(12288, norms=True)

    def forward(self, x, cos, sin):
        return self.layer.prompt(x, cos, sin)
